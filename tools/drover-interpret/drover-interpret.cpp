//===- drover-interpret.cpp - run a function of a tfm program ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/Inputs.h"
#include "drover/Registration.h"
#include "drover/Support/Npy.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace drover;
namespace cl = llvm::cl;

namespace {
struct Options {
  cl::OptionCategory category{"drover-interpret"};
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.mlir"), cl::init("-"), cl::cat(category)};
  cl::opt<std::string> entry{"entry", cl::desc("function to run"), cl::value_desc("NAME"), cl::init("model"),
                             cl::cat(category)};
  cl::list<std::string> inputs{"input", cl::desc("value of an argument: a .npy file, zeros, ones or arange"),
                               cl::value_desc("NAME=VALUE"), cl::cat(category)};
  cl::list<std::string> dims{"dim", cl::desc("value of a symbolic size"), cl::value_desc("NAME=VALUE"),
                             cl::cat(category)};
  cl::opt<std::string> outputs{"output-dir", cl::desc("write NAME.npy for each result (default: print them)"),
                               cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> sources{"source-dir", cl::desc("folder of the files that #tfm.source names (default: MODEL's)"),
                               cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<int64_t> random{"random", cl::desc("seed for arguments without a value"), cl::value_desc("SEED"),
                          cl::init(-1), cl::cat(category)};
  cl::opt<bool> exact{"exact", cl::desc("compute in f64 and round nothing"), cl::cat(category)};
};
} // namespace

static int fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "drover-interpret") << message << "\n";
  return 1;
}

static void print(StringRef name, const Tensor &tensor) {
  llvm::outs() << name << " ";
  for (int64_t size : tensor.shape)
    llvm::outs() << size << "x";
  llvm::outs() << drover::name(tensor.kind) << ":";
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (isFloat(tensor.kind))
      llvm::outs() << llvm::format(" %.9g", tensor.floats[i]);
    else
      llvm::outs() << " " << tensor.ints[i];
  }
  llvm::outs() << "\n";
}

static LogicalResult split(StringRef text, StringRef &name, StringRef &value) {
  std::tie(name, value) = text.split('=');
  return success(!name.empty() && !value.empty());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv, "Runs a function of a tfm program with drover's reference interpreter\n");

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(options.model, sources, &context);
  if (!module)
    return 1;
  auto function = module->lookupSymbol<func::FuncOp>(options.entry);
  if (!function || function.isExternal())
    return fail("no function @" + options.entry + " with a body");

  InterpreterOptions run;
  run.exact = options.exact;
  NamedInputs inputs;
  inputs.folder = options.sources.empty() ? llvm::sys::path::parent_path(options.model).str() : options.sources;
  if (options.random >= 0)
    inputs.randomSeed = options.random;
  for (StringRef input : options.inputs) {
    StringRef name, value;
    if (failed(split(input, name, value)))
      return fail("expected --input=NAME=VALUE, not " + input);
    inputs.values[name] = value.str();
  }
  auto symbols = module->getOperation()->getAttrOfType<ArrayAttr>(tfm::TfmDialect::kSymbolsAttr);
  if (symbols)
    run.symbols.assign(symbols.size(), ShapedType::kDynamic);
  for (StringRef dim : options.dims) {
    StringRef name, value;
    int64_t size;
    if (failed(split(dim, name, value)) || value.getAsInteger(10, size) || size < 0)
      return fail("expected --dim=NAME=VALUE, not " + dim);
    auto found = llvm::find_if(symbols ? symbols.getValue() : ArrayRef<Attribute>(),
                               [&](Attribute symbol) { return cast<StringAttr>(symbol).getValue() == name; });
    if (!symbols || found == symbols.end())
      return fail("the module has no symbol named " + name);
    run.symbols[found - symbols.begin()] = size;
  }
  std::string reason;
  if (failed(bindSymbols(function, inputs, run.symbols, reason)))
    return fail(reason);
  for (const auto &entry : inputs.values)
    if (llvm::none_of(llvm::seq(function.getNumArguments()),
                      [&](unsigned i) { return argumentName(function, i) == entry.getKey(); }))
      return fail("@" + options.entry + " has no argument named " + entry.getKey());
  run.argument = [&](BlockArgument argument, std::string &why) {
    return readArgument(function, argument.getArgNumber(), inputs, run.symbols, why);
  };
  SmallVector<Tensor> results;
  if (failed(interpret(function, {}, results, run, &reason)))
    return fail(reason);

  if (!options.outputs.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(options.outputs))
      return fail(options.outputs + ": " + error.message());
  for (auto [index, tensor] : llvm::enumerate(results)) {
    std::string name = resultName(function, index);
    if (options.outputs.empty()) {
      print(name, tensor);
      continue;
    }
    SmallString<128> path(options.outputs);
    llvm::sys::path::append(path, name + ".npy");
    if (llvm::Error error = writeNpy(path, tensor))
      return fail(llvm::toString(std::move(error)));
  }
  return 0;
}
