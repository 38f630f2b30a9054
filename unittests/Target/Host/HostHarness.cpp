//===- HostHarness.cpp - compiled bodies against the interpreter *- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include "Backend.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/rt/thread_pool.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace drover;
using namespace drover::test;

CompiledBodies::CompiledBodies(const std::string &text, const host::HostOptions &options) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, rt::RtDialect, shard::ShardDialect,
                  tfm::TfmDialect>();
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  source = parseSourceString<ModuleOp>(text, context.get());
  if (!source)
    return;
  lowered = source->clone();
  PassManager manager(context.get());
  backend::buildPipeline(manager, options);
  if (failed(manager.run(*lowered)))
    return;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto created = llvm::orc::LLJITBuilder().create();
  if (!created) {
    messages += llvm::toString(created.takeError());
    return;
  }
  std::unique_ptr<llvm::orc::LLJIT> loaded = std::move(*created);
  if (backend::load(*lowered, *loaded, options, messages))
    jit = std::move(loaded);
}

void backend::addObject(llvm::orc::LLJIT &jit, ArrayRef<char> object, std::string &messages) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "bodies");
  if (llvm::Error error = jit.addObjectFile(std::move(buffer)))
    messages += llvm::toString(std::move(error));
}

CompiledBodies::~CompiledBodies() = default;

func::FuncOp CompiledBodies::original(StringRef name) { return source->lookupSymbol<func::FuncOp>(name); }

int64_t CompiledBodies::workspaceBytes(StringRef name) {
  return lowered->lookupSymbol(name)->getAttrOfType<IntegerAttr>("drover.workspace_bytes").getInt();
}

drover_body_fn CompiledBodies::function(StringRef name) {
  auto address = jit->lookup(name);
  if (!address) {
    messages += llvm::toString(address.takeError());
    return nullptr;
  }
  return address->toPtr<drover_body_fn>();
}

namespace {
/// Memory as the runtime gives it: 64-byte aligned, and poisoned, so that a body that reads what it did not write, or
/// writes past its end, is found.
class Buffer {
public:
  static constexpr size_t kGuard = 256;
  explicit Buffer(size_t bytes) : size(bytes), memory(bytes + 64 + 2 * kGuard, char(0xa5)) {
    char *start = memory.data() + kGuard;
    aligned = start + (64 - reinterpret_cast<uintptr_t>(start) % 64) % 64;
  }
  void *data() const { return aligned; }
  size_t bytes() const { return size; }
  bool guardsIntact() const {
    const char *begin = memory.data(), *end = begin + memory.size();
    auto poison = [](char c) { return c == char(0xa5); };
    return std::all_of(begin, static_cast<const char *>(aligned), poison) &&
           std::all_of(static_cast<const char *>(aligned) + size, end, poison);
  }

private:
  size_t size;
  std::vector<char> memory;
  char *aligned;
};
} // namespace

static Tensor emptyLike(Type type, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  for (int64_t &dim : shape)
    if (ShapedType::isDynamic(dim))
      dim = size;
  return Tensor(*elementKind(tensor), shape);
}

std::vector<Tensor> CompiledBodies::run(StringRef name, ArrayRef<Tensor> arguments, const Run &run) {
  std::unique_lock<std::mutex> lock(reading);
  func::FuncOp body = original(name);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<void *> operands;
  auto add = [&](const Tensor &tensor, bool fill) {
    std::vector<char> bytes = encode(tensor);
    buffers.push_back(std::make_unique<Buffer>(bytes.size()));
    if (fill)
      std::memcpy(buffers.back()->data(), bytes.data(), bytes.size());
    operands.push_back(buffers.back()->data());
  };
  for (const Tensor &argument : arguments)
    add(argument, true);
  std::vector<std::pair<Tensor, size_t>> results;
  for (unsigned i = 0; i < body.getNumResults(); ++i) {
    Tensor result = emptyLike(body.getResultTypes()[i], run.size);
    if (auto inplace = body.getResultAttrOfType<IntegerAttr>(i, "tfm.inplace")) {
      results.push_back({result, inplace.getInt()});
      continue;
    }
    results.push_back({result, operands.size()});
    add(result, false);
  }
  Buffer workspace(workspaceBytes(name));
  std::vector<std::unique_ptr<backend::Memory>> memory;
  for (size_t i = 0; i < buffers.size(); ++i)
    memory.push_back(std::make_unique<backend::Memory>(buffers[i]->data(), buffers[i]->bytes(), i < arguments.size()));
  memory.push_back(std::make_unique<backend::Memory>(workspace.data(), workspace.bytes(), false));
  drover_pool pool(run.threads);
  drover_call call = {&pool, run.size, run.accumulate, 0, run.coordinates.data(), run.communicators, nullptr};
  drover_body_fn compiled = function(name);
  lock.unlock();
  backend::call(compiled, operands.data(), workspace.data(), call, run.threads);
  std::vector<Tensor> values;
  for (auto &[tensor, operand] : results) {
    size_t bytes = tensor.size() * byteWidth(tensor.kind);
    decode(ArrayRef(static_cast<const char *>(operands[operand]), bytes), tensor);
    values.push_back(tensor);
  }
  for (auto &buffer : buffers)
    EXPECT_TRUE(buffer->guardsIntact()) << "a body wrote outside of an operand";
  EXPECT_TRUE(workspace.guardsIntact()) << "a body wrote outside of its workspace";
  return values;
}

std::vector<Tensor> test::randomArguments(func::FuncOp function, uint64_t seed, int64_t size) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0.0, 1.0);
  std::vector<Tensor> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    Tensor tensor = emptyLike(function.getArgumentTypes()[i], size);
    int64_t low = 0, high = 2;
    if (auto range = function.getArgAttrOfType<DenseI64ArrayAttr>(i, "test.range")) {
      low = range[0];
      high = range[1];
    }
    bool positive = function.getArgAttr(i, "test.positive") != nullptr;
    std::uniform_int_distribution<int64_t> integer(low, high - 1);
    for (int64_t j = 0; j < tensor.size(); ++j) {
      if (isFloat(tensor.kind)) {
        double value = normal(generator);
        tensor.floats[j] = roundTo(positive ? std::fabs(value) + 0.1 : value, tensor.kind);
      } else {
        tensor.ints[j] = integer(generator);
      }
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

void test::expectClose(const Tensor &got, const Tensor &want, Tolerance tolerance, unsigned result) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 0.0;
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.asDouble(i)))
      largest = std::max(largest, std::fabs(want.asDouble(i)));
  if (!isFloat(want.kind))
    tolerance = {0.0, 0.0};
  int64_t worst = -1;
  double excess = 0.0;
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = got.asDouble(i), b = want.asDouble(i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double over = std::fabs(a - b) - (tolerance.relative * std::fabs(b) + tolerance.ofLargest * largest);
    if (!(over <= excess)) {
      excess = std::isnan(over) ? INFINITY : over;
      worst = i;
    }
  }
  if (worst >= 0)
    ADD_FAILURE() << "result " << result << " element " << worst << " is " << got.asDouble(worst) << ", not "
                  << want.asDouble(worst) << " (largest " << largest << ")";
}

InterpreterOptions test::interpreterAt(const Coordinates &coordinates) {
  InterpreterOptions options;
  for (auto [axis, name] : {std::pair(DROVER_AXIS_TP, "tp"),
                            {DROVER_AXIS_CP, "cp"},
                            {DROVER_AXIS_DP, "dp"},
                            {DROVER_AXIS_KV, "kv"},
                            {DROVER_AXIS_REPLICA, "replica"}})
    options.coordinates[name] = coordinates[axis];
  return options;
}

static bool sameBits(const Tensor &a, const Tensor &b) { return encode(a) == encode(b); }

void test::expectMatches(const std::string &text, Tolerance tolerance, int64_t size, StringRef name, int accumulate,
                         const Coordinates &coordinates, const host::HostOptions &options) {
  CompiledBodies bodies(text, options);
  ASSERT_TRUE(bodies.ok()) << bodies.diagnostics();
  func::FuncOp body = bodies.original(name);
  ASSERT_TRUE(body);
  std::vector<Tensor> arguments = randomArguments(body, 7, size);
  std::vector<Tensor> one = bodies.run(name, arguments, {1, accumulate, size, coordinates});
  for (int threads : {2, 3}) {
    std::vector<Tensor> other = bodies.run(name, arguments, {threads, accumulate, size, coordinates});
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(sameBits(one[i], other[i])) << "result " << i << " depends on the order of " << backend::kOrder;
  }
  if (!accumulate) // as if the accumulators held nothing
    for (unsigned i = 0; i < body.getNumResults(); ++i)
      if (auto inplace = body.getResultAttrOfType<IntegerAttr>(i, "tfm.inplace"))
        for (double &value : arguments[inplace.getInt()].floats)
          value = 0.0;
  SmallVector<Tensor> want;
  std::string reason;
  ASSERT_TRUE(succeeded(interpret(body, arguments, want, interpreterAt(coordinates), &reason))) << reason;
  ASSERT_EQ(one.size(), want.size());
  for (size_t i = 0; i < one.size(); ++i)
    expectClose(one[i], want[i], tolerance, i);
}
