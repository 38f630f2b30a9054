//===- Assemble.cpp - PTX to machine code -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace drover;

static constexpr llvm::StringLiteral kDefaultFolder = "/usr/local/cuda";

static std::string ptxasIn(StringRef folder) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, "bin", "ptxas");
  return llvm::sys::fs::can_execute(path) ? path.str().str() : "";
}

std::string cuda::findPtxas() {
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *folder = getenv(name); folder && *folder)
      return ptxasIn(folder); // this toolkit, or none
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  return ptxasIn(kDefaultFolder);
}

namespace {
/// A temporary file that goes with this object.
struct TemporaryFile {
  std::error_code create(StringRef suffix) { return llvm::sys::fs::createTemporaryFile("drover", suffix, path); }
  ~TemporaryFile() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }
  SmallString<128> path;
};
} // namespace

static int numberBefore(StringRef text, StringRef pattern) {
  SmallVector<StringRef> matches;
  int number = 0;
  if (llvm::Regex(("([0-9]+) " + pattern).str()).match(text, &matches))
    matches[1].getAsInteger(10, number);
  return number;
}

LogicalResult cuda::verifyHasPtxas(Location location) {
  if (!findPtxas().empty())
    return success();
  return emitError(location) << "no ptxas in bin of CUDA_HOME or CUDA_PATH, where one is set, else in PATH or in "
                             << kDefaultFolder << "/bin; --emit=ptx needs none";
}

FailureOr<cuda::Cubin> cuda::assemble(Location location, StringRef ptx) {
  if (failed(verifyHasPtxas(location)))
    return failure();
  std::string ptxas = findPtxas();
  TemporaryFile source, image, log;
  for (auto [file, suffix] : {std::pair(&source, "ptx"), {&image, "cubin"}, {&log, "log"}})
    if (std::error_code code = file->create(suffix))
      return emitError(location) << "cannot make a temporary file: " << code.message();
  std::error_code code;
  llvm::raw_fd_ostream(source.path, code) << ptx;
  if (code)
    return emitError(location) << "cannot write '" << source.path << "': " << code.message();
  SmallVector<StringRef> named;
  if (!llvm::Regex("\\.target (sm_[0-9a-z]+)").match(ptx, &named))
    return emitError(location) << "the PTX of a kernel has no .target";
  std::string message, architecture = ("-arch=" + named[1]).str();
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log.path), StringRef(log.path)};
  int status = llvm::sys::ExecuteAndWait(ptxas, {ptxas, architecture, "-v", "-o", image.path, source.path},
                                         std::nullopt, redirects, 0, 0, &message);
  auto said = llvm::MemoryBuffer::getFile(log.path, /*IsText=*/true);
  StringRef text = said ? (*said)->getBuffer() : StringRef();
  if (status != 0)
    return emitError(location) << "ptxas refuses a kernel: " << (message.empty() ? text.trim() : StringRef(message));
  auto bytes = llvm::MemoryBuffer::getFile(image.path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return emitError(location) << "cannot read what ptxas wrote: " << bytes.getError().message();
  Cubin cubin;
  cubin.image.append((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
  SmallVector<StringRef> matches;
  if (llvm::Regex("Used ([0-9]+) registers").match(text, &matches))
    matches[1].getAsInteger(10, cubin.resources.registers);
  cubin.resources.sharedBytes = numberBefore(text, "bytes smem");
  cubin.resources.stackBytes = numberBefore(text, "bytes stack frame");
  cubin.resources.spillStoreBytes = numberBefore(text, "bytes spill stores");
  cubin.resources.spillLoadBytes = numberBefore(text, "bytes spill loads");
  cubin.resources.serializesWgmma = text.contains("serialized");
  return cubin;
}
