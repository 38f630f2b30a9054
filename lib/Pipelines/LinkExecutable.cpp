//===- LinkExecutable.cpp - an object and the runtime to an executable ----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;

namespace drover {
namespace {

/// The folder that holds libdrover_rt.a: as given, by the environment, or beside the compiler. All that were tried go
/// to `tried`.
std::optional<std::string> findRuntime(StringRef given, SmallVectorImpl<std::string> &tried) {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  SmallVector<std::string> folders;
  if (!given.empty())
    folders.push_back(given.str());
  else if (std::optional<std::string> folder = llvm::sys::Process::GetEnv("DROVER_RUNTIME_DIR"))
    folders.push_back(*folder);
  else
    folders.push_back((llvm::sys::path::parent_path(llvm::sys::path::parent_path(self)) + "/lib").str());
  for (const std::string &folder : folders) {
    SmallString<128> archive(folder);
    llvm::sys::path::append(archive, "libdrover_rt.a");
    if (llvm::sys::fs::exists(archive))
      return archive.str().str();
    tried.push_back(archive.str().str());
  }
  return std::nullopt;
}

/// The first driver of the list made at configure time (colons between) that this machine has.
std::optional<std::string> findLinker(SmallVectorImpl<std::string> &tried) {
  SmallVector<StringRef> names;
  StringRef(DROVER_LINK_DRIVERS).split(names, ':', -1, /*KeepEmpty=*/false);
  for (StringRef name : names) {
    if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
      return *path;
    tried.push_back(name.str());
  }
  return std::nullopt;
}

} // namespace

LogicalResult linkExecutable(Location location, StringRef object, StringRef output, StringRef runtimeDir) {
  SmallVector<std::string> tried;
  auto report = [&](StringRef what) {
    InFlightDiagnostic diagnostic = emitError(location) << what;
    for (const std::string &name : tried)
      diagnostic.attachNote() << "tried " << name;
    return diagnostic;
  };
  std::optional<std::string> runtime = findRuntime(runtimeDir, tried);
  if (!runtime)
    return report("the runtime library is not found: set DROVER_RUNTIME_DIR to its folder");
  std::optional<std::string> linker = findLinker(tried);
  if (!linker)
    return report("no C++ compiler to link with is found");

  std::string objectPath = object.str(), outputPath = output.str();
  SmallVector<StringRef> command = {*linker, "-o", outputPath, objectPath, *runtime};
  SmallVector<StringRef> options;
  StringRef(DROVER_LINK_OPTIONS).split(options, ':', -1, /*KeepEmpty=*/false);
  command.append(options.begin(), options.end());

  SmallString<128> messages;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile("drover-link", "txt", messages))
    return report("cannot make a temporary file: " + code.message());
  std::optional<StringRef> redirects[] = {StringRef(), messages.str(), messages.str()};
  std::string failure;
  int status = llvm::sys::ExecuteAndWait(*linker, command, std::nullopt, redirects, 0, 0, &failure);
  auto text = llvm::MemoryBuffer::getFile(messages);
  (void)llvm::sys::fs::remove(messages);
  if (status == 0)
    return success();
  InFlightDiagnostic diagnostic = emitError(location) << "linking failed with status " << status << failure;
  diagnostic.attachNote() << "command: " << llvm::join(command, " ");
  if (text)
    diagnostic.attachNote() << (*text)->getBuffer().take_front(2000);
  return diagnostic;
}

/// As a whole or not at all: a run may be reading what is there.
static std::error_code copyFile(const Twine &from, StringRef to) {
  SmallString<128> temporary;
  if (std::error_code code = llvm::sys::fs::createUniqueFile(to + ".%%%%%%", temporary))
    return code;
  std::error_code code = llvm::sys::fs::copy_file(from, temporary);
  if (!code)
    code = llvm::sys::fs::rename(temporary, to);
  if (code)
    (void)llvm::sys::fs::remove(temporary);
  return code;
}

/// Libraries beside the runtime's, to where the executable will look for them.
static LogicalResult copyBeside(Location location, StringRef output, StringRef runtimeDir, ArrayRef<StringRef> names,
                                StringRef whyMissing) {
  SmallVector<std::string> tried;
  std::optional<std::string> runtime = findRuntime(runtimeDir, tried);
  if (!runtime)
    return emitError(location) << "the runtime library is not found: set DROVER_RUNTIME_DIR to its folder";
  for (StringRef name : names) {
    SmallString<128> from(llvm::sys::path::parent_path(*runtime)), to(llvm::sys::path::parent_path(output));
    llvm::sys::path::append(from, name);
    llvm::sys::path::append(to, name);
    if (!whyMissing.empty() && !llvm::sys::fs::exists(from))
      return emitError(location) << "no '" << from << "': " << whyMissing;
    bool same = false;
    if (!llvm::sys::fs::equivalent(from, to, same) && same)
      continue;
    if (std::error_code code = copyFile(from, to))
      return emitError(location) << "cannot copy '" << from << "' to '" << to << "': " << code.message();
  }
  return success();
}

LogicalResult copyNcclPlugins(Location location, StringRef output, StringRef runtimeDir) {
  return copyBeside(location, output, runtimeDir, {"libnccl-env-drover.so", "libnccl-tuner-drover.so"}, "");
}

LogicalResult copyCudnnLibrary(Location location, StringRef output, StringRef runtimeDir) {
  return copyBeside(location, output, runtimeDir, {"libdrover-cudnn.so"},
                    "--attention=cudnn needs it, and it is built where the headers of cuDNN are (docs/cuda.md); "
                    "accepted without it are generated, wgmma and auto");
}

} // namespace drover
