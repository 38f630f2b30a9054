//===- CompileToCuda.cpp - kernels of a GPU to files or a program ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "drover/Target/Cuda/Cuda.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace drover {

LogicalResult Compilation::kernels() {
  cuda::ImageOptions imageOptions;
  imageOptions.assembled = options.emit != Emit::Ptx;
  imageOptions.cacheFolder = cuda::defaultCacheFolder();
  FailureOr<std::vector<host::GpuImage>> images = cuda::emitImages(*module, imageOptions);
  if (failed(images))
    return failure();
  if (emitsKernels())
    return writeKernels(*images);
  FailureOr<std::string> gpuModules = cuda::takeKernels(*module);
  if (failed(gpuModules))
    return error() << "cannot write its kernels as bytecode";
  return embed(*images, *gpuModules);
}

/// --emit=ptx or cubin: a file a kernel, NAME.ptx or NAME.cubin, in the folder OUT.
LogicalResult Compilation::writeKernels(llvm::ArrayRef<host::GpuImage> images) {
  bool assembled = options.emit == Emit::Cubin;
  for (const host::GpuImage &image : images) {
    SmallString<128> path(options.output);
    llvm::sys::path::append(path, image.name + (assembled ? ".cubin" : ".ptx"));
    std::error_code code;
    llvm::raw_fd_ostream file(path, code);
    if (!code) {
      file << (assembled ? StringRef(image.cubin.data(), image.cubin.size()) : StringRef(image.ptx));
      file.close();
      code = file.error();
    }
    if (code)
      return error() << "cannot write '" << path << "': " << code.message();
  }
  return success();
}

LogicalResult Compilation::writeNcclFiles(Location location) {
  std::string path = options.output + ".nccl.json";
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (!code) {
    file << ncclSettings;
    file.close();
    code = file.error();
  }
  if (code)
    return error() << "cannot write '" << path << "': " << code.message();
  // Without a cluster they would have nothing to say.
  return options.cluster ? copyNcclPlugins(location, options.output, options.runtimeDir) : success();
}

} // namespace drover
