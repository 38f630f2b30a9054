//===- drover-emulate-kernels.cpp - a gpu.module as a library ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HookKernels.h"
#include "drover/Target/Host/Host.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace drover;
namespace cl = llvm::cl;

namespace {
enum class Emit { MLIR, LLVM, Library };

cl::OptionCategory category("options of drover-emulate-kernels");
cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("IN.mlir or IN.mlirbc"), cl::cat(category));
cl::opt<std::string> output("o", cl::Required, cl::value_desc("file"), cl::desc("Where to write"), cl::cat(category));
cl::opt<bool> lower("lower", cl::desc("First lower scf, arith, vector and math in the gpu.module to the llvm dialect"),
                    cl::cat(category));
cl::opt<Emit> emit("emit", cl::desc("What to write"), cl::init(Emit::Library), cl::cat(category),
                   cl::values(clEnumValN(Emit::MLIR, "mlir", "the instrumented module"),
                              clEnumValN(Emit::LLVM, "llvm", "its LLVM IR, optimized"),
                              clEnumValN(Emit::Library, "library", "a shared library (the default)")));
cl::opt<std::string> emulator("emulator-library", cl::value_desc("file"),
                              cl::desc("libdrover_emulator.so (default: beside this tool's folder, in lib)"),
                              cl::cat(category));

/// What a kernel goes through before ptxas, up to and without the conversion of nvvm operations.
constexpr llvm::StringLiteral lowering =
    "builtin.module(gpu.module(canonicalize,cse,convert-scf-to-cf,convert-to-llvm,reconcile-unrealized-casts,"
    "canonicalize,cse))";

int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "drover-emulate-kernels") << message << "\n";
  return 1;
}

/// Links the object with the emulator; the library finds the emulator by its soname, as loaded by then.
int link(llvm::ArrayRef<char> object, const char *argv0) {
  llvm::SmallString<128> objectPath;
  int descriptor = -1;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("drover-kernels", "o", descriptor, objectPath))
    return fail("cannot make a temporary file: " + error.message());
  llvm::FileRemover remover(objectPath);
  llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << llvm::StringRef(object.data(), object.size());

  llvm::SmallString<128> runtime(emulator);
  if (runtime.empty()) {
    runtime = llvm::sys::fs::getMainExecutable(argv0, reinterpret_cast<void *>(&link));
    llvm::sys::path::remove_filename(runtime);
    llvm::sys::path::append(runtime, "..", "lib", "libdrover_emulator.so");
  }
  if (!llvm::sys::fs::exists(runtime))
    return fail("no emulator library at " + runtime + "; name it with --emulator-library");
  for (llvm::StringRef name : {"ld.lld-22", "ld.lld"})
    if (auto linker = llvm::sys::findProgramByName(name)) {
      std::string error;
      int status = llvm::sys::ExecuteAndWait(
          *linker, {*linker, "-shared", "-z", "now", "-o", output, objectPath.str(), runtime.str()}, std::nullopt, {},
          0, 0, &error);
      return status == 0 ? 0 : fail("the linker failed on " + output + ": " + error);
    }
  return fail("no ld.lld in PATH");
}
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Compiles the kernels of a gpu.module for this CPU (docs/cuda.md).\n");

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, sources, &context);
  if (!module)
    return 1;
  if (lower) {
    registerAllPasses();
    PassManager manager(&context);
    if (failed(parsePassPipeline(StringRef(lowering).drop_front(strlen("builtin.module(")).drop_back(), manager)) ||
        failed(manager.run(*module)))
      return 1;
  }
  llvm::FailureOr<OwningOpRef<ModuleOp>> hooked = emu::hookKernels(*module);
  if (failed(hooked))
    return 1;
  if (emit == Emit::Library) {
    auto object = host::emitObject(**hooked, {});
    return failed(object) ? 1 : link(*object, argv[0]);
  }
  std::error_code error;
  llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_Text);
  if (error)
    return fail("cannot write " + output + ": " + error.message());
  if (emit == Emit::MLIR) {
    (*hooked)->print(file.os());
  } else {
    auto text = host::emitLLVM(**hooked, {});
    if (failed(text))
      return 1;
    file.os() << *text;
  }
  file.keep();
  return 0;
}
