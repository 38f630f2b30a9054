//===- HostProgramTest.cpp - the embedded step program ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Object/ObjectFile.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;

namespace {

const char *kBody = R"(
func.func private @body(%x: tensor<4xf32>) -> (tensor<4xf32>) attributes {tfm.body = "forward"} {
  %0 = arith.negf %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @microbatch(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tfm.microbatch} {
  %0 = func.call @body(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})";

class HostProgram : public ::testing::Test {
protected:
  HostProgram() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, tfm::TfmDialect>();
    module = parseSourceString<ModuleOp>(kBody, &context);
    PassManager manager(&context);
    host::buildHostLoweringPipeline(manager, {});
    EXPECT_TRUE(succeeded(manager.run(*module)));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(HostProgram, IsTheTableOfAbi) {
  drover_action actions[2] = {};
  actions[1].sequence = 7;
  ArrayRef<char> bytes(reinterpret_cast<const char *>(actions), sizeof(actions));
  std::vector<std::string> bodies = {"body"};
  host::GpuImage images[2];
  images[0].name = "rows_b";
  images[0].cubin = {'\x7f', 'E', '\0'};
  images[0].ptx = ".version";
  images[0].architecture = 90;
  images[1].name = "rows_a";
  images[1].cubin = {'\x7f'};
  images[1].architecture = 90;
  images[1].isArchitectureSpecific = true;
  ASSERT_TRUE(succeeded(host::embedProgram(*module, {"{\"format\": 1}", bytes, bodies, images, "ML"})));
  FailureOr<SmallVector<char, 0>> object = host::emitObject(*module, {});
  ASSERT_TRUE(succeeded(object));
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  // The kernel's launch is the only thing that the runtime provides.
  auto launch = +[](const drover_call *, drover_kernel_fn kernel, int64_t count, int64_t, void *const *operands) {
    kernel(0, count, operands);
  };
  llvm::orc::SymbolMap symbols;
  symbols[jit->mangleAndIntern("drover_rt_parallel_for")] = {llvm::orc::ExecutorAddr::fromPtr(launch),
                                                             llvm::JITSymbolFlags::Exported};
  llvm::cantFail(jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols)));
  llvm::cantFail(
      jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(StringRef(object->data(), object->size()), "program")));
  auto *program = llvm::cantFail(jit->lookup("drover_embedded_program")).toPtr<const drover_program *>();
  EXPECT_EQ(program->version, uint32_t(DROVER_PROGRAM_VERSION));
  ASSERT_EQ(program->num_bodies, 1u);
  EXPECT_EQ(StringRef(program->metadata, program->metadata_bytes), "{\"format\": 1}");
  ASSERT_EQ(program->num_actions, 2u);
  EXPECT_EQ(static_cast<const drover_action *>(program->actions)[1].sequence, 7u);
  ASSERT_EQ(program->num_gpu_images, 2u);
  const drover_gpu_image &first = program->gpu_images[0], &second = program->gpu_images[1];
  EXPECT_EQ(StringRef(first.name), "rows_a"); // in order of names
  EXPECT_EQ(first.ptx, nullptr);
  EXPECT_EQ(StringRef(static_cast<const char *>(program->gpu_modules), program->gpu_modules_bytes), "ML");
  EXPECT_EQ(first.architecture_specific, 1u);
  EXPECT_EQ(StringRef(static_cast<const char *>(second.cubin), second.cubin_bytes), StringRef("\x7f"
                                                                                              "E\0",
                                                                                              3));
  EXPECT_EQ(StringRef(second.ptx), ".version");
  EXPECT_EQ(second.ptx_bytes, 8u);
  EXPECT_EQ(second.architecture, 90u);
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  void *operands[] = {x, y};
  drover_call call = {};
  program->bodies[0](operands, nullptr, &call);
  EXPECT_EQ(y[3], -4.0f);
}

TEST_F(HostProgram, RejectsBodiesThatWereNotCompiledAndPartsOfActions) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  std::vector<std::string> missing = {"layer"}, bodies = {"body"};
  EXPECT_TRUE(failed(host::embedProgram(*module, {"", {}, missing, {}, ""})));
  EXPECT_EQ(message, "the step program names a body 'layer' that was not compiled");
  char byte = 0;
  EXPECT_TRUE(failed(host::embedProgram(*module, {"", ArrayRef(&byte, 1), bodies, {}, ""})));
  EXPECT_EQ(message, "expects whole actions of " + std::to_string(sizeof(drover_action)) + " bytes, not 1 bytes");
}

} // namespace
