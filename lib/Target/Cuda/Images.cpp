//===- Images.cpp - the kernels of a program as images ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace drover;

std::string cuda::defaultCacheFolder() {
  if (const char *named = getenv("DROVER_KERNEL_CACHE"))
    return named;
  SmallString<128> path;
  const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (caches && *caches)
    path = caches;
  else if (home && *home)
    llvm::sys::path::append(path, home, ".cache");
  else
    return "";
  llvm::sys::path::append(path, "drover", "kernels");
  return path.str().str();
}

/// What `ptxas --version` prints: cubins of one version are not those of another. Empty where it does not run.
static std::string versionOfPtxas() {
  std::string ptxas = cuda::findPtxas();
  SmallString<128> path;
  if (ptxas.empty() || llvm::sys::fs::createTemporaryFile("drover", "version", path))
    return "";
  llvm::FileRemover remover(path);
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(path), StringRef(path)};
  if (llvm::sys::ExecuteAndWait(ptxas, {ptxas, "--version"}, std::nullopt, redirects) != 0)
    return "";
  auto text = llvm::MemoryBuffer::getFile(path);
  return text ? (*text)->getBuffer().str() : "";
}

namespace {
/// Cubins in a folder. A cache that cannot be read or written only costs time, so that nothing here is an error.
class CubinCache {
public:
  explicit CubinCache(StringRef folder) {
    if (folder.empty() || llvm::sys::fs::create_directories(folder))
      return;
    version = versionOfPtxas();
    if (!version.empty())
      this->folder = folder.str();
  }

  std::string pathOf(StringRef ptx) const {
    if (folder.empty())
      return "";
    llvm::SHA256 hash;
    hash.update(version);
    hash.update(ptx);
    SmallString<128> path(folder);
    llvm::sys::path::append(path, llvm::toHex(hash.final(), /*LowerCase=*/true) + ".cubin");
    return path.str().str();
  }

  /// An ELF file, or nothing.
  static SmallVector<char, 0> read(const std::string &path) {
    SmallVector<char, 0> image;
    auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (bytes && (*bytes)->getBuffer().starts_with("\x7f"
                                                   "ELF"))
      image.append((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
    return image;
  }

  /// Under another name first: a reader sees all of it or nothing.
  static void write(const std::string &path, ArrayRef<char> image) {
    auto file = llvm::sys::fs::TempFile::create(path + ".%%%%%%%%");
    if (!file)
      return llvm::consumeError(file.takeError());
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    os.write(image.data(), image.size());
    os.flush();
    bool isWhole = !os.has_error();
    os.clear_error();
    llvm::consumeError(isWhole ? file->keep(path) : file->discard());
  }

private:
  std::string folder, version;
};
} // namespace

FailureOr<std::vector<host::GpuImage>> cuda::emitImages(ModuleOp module, const ImageOptions &options) {
  auto kernels = llvm::to_vector(module.getOps<gpu::GPUModuleOp>());
  std::vector<host::GpuImage> images(kernels.size());
  if (options.assembled && !kernels.empty() && failed(verifyHasPtxas(kernels.front().getLoc())))
    return failure(); // once, not for every kernel
  CubinCache cache(options.assembled ? options.cacheFolder : "");
  auto emit = [&](size_t number) -> LogicalResult {
    gpu::GPUModuleOp kernel = kernels[number];
    host::GpuImage &image = images[number];
    image.name = kernel.getName().str();
    image.architecture = kArchitecture;
    FailureOr<std::string> ptx = emitPtx(kernel);
    if (failed(ptx))
      return failure();
    image.isArchitectureSpecific = architectureOf(kernel) != "sm_" + std::to_string(kArchitecture);
    if (!options.assembled || !image.isArchitectureSpecific) // PTX for one architecture is none for newer ones
      image.ptx = *ptx;
    if (!options.assembled)
      return success();
    std::string path = cache.pathOf(*ptx);
    if (!path.empty())
      image.cubin = CubinCache::read(path);
    if (!image.cubin.empty())
      return success();
    FailureOr<Cubin> cubin = assemble(kernel.getLoc(), *ptx);
    if (failed(cubin))
      return failure();
    image.cubin = std::move(cubin->image);
    if (!path.empty())
      CubinCache::write(path, image.cubin);
    return success();
  };
  if (failed(failableParallelForEachN(module.getContext(), 0, kernels.size(), emit)))
    return failure();
  return images;
}

FailureOr<std::string> cuda::takeKernels(ModuleOp module) {
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  for (auto kernel : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
    kernel->moveBefore(kernels->getBody(), kernels->getBody()->end());
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  if (failed(writeBytecodeToFile(*kernels, stream)))
    return failure();
  return bytecode;
}
