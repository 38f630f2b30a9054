//===- DeviceMatmul.cpp - matrix products by cuBLASLt ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/DeviceMatmul.h"
#include "device/CudaDevice.h"
#include "drover/rt/dtype.h"
#include "drover/rt/error.h"

namespace drover::rt {

using namespace cublaslt;

/// What NVIDIA's guide recommends for Hopper (cuBLAS, cublasSetWorkspace).
static constexpr size_t workspaceBytes = size_t(32) << 20;
/// Slots and parameters lie at multiples of 64 bytes, and parts of packed tensors at multiples of 16.
static constexpr uint32_t alignment = 16;

static const LibraryNames libraryNames = {"cublasLt",
                                          "DROVER_RT_CUBLASLT",
                                          {"libcublasLt.so.13", "libcublasLt.so.12"},
                                          "it comes with the CUDA toolkit (the wheel nvidia-cublas has it)"};

CublasLtLibrary::CublasLtLibrary(const std::string &asked) : SharedLibrary(libraryNames, asked) {
#define DROVER_RESOLVE(result, member, symbol, parameters) resolve(member, #symbol);
  DROVER_CUBLASLT_FUNCTIONS(DROVER_RESOLVE)
#undef DROVER_RESOLVE
}

DeviceMatmul::DeviceMatmul(Device &device, Stream &stream, MatmulAlgorithms &algorithms, int64_t idleSms,
                           const std::string &library)
    : device(device), stream(stream), algorithms(algorithms), library(library),
      workspace(device.allocate(int64_t(workspaceBytes))) {
  if (idleSms >= device.multiprocessors())
    fail(device.describe(), ": the program leaves ", idleSms, " multiprocessors to NCCL (--communication-sms) of ",
         device.multiprocessors(), " that there are");
  if (idleSms > 0)
    sms = int32_t(device.multiprocessors() - idleSms);
  check(this->library.create(&handle), "cublasLtCreate", ""); // last: of a constructor that throws nothing is destroyed
}

DeviceMatmul::~DeviceMatmul() {
  for (const auto &[key, plan] : plans) {
    for (Handle layout : {plan.first, plan.second, plan.result})
      if (layout)
        library.layoutDestroy(layout);
    if (plan.product)
      library.matmulDescDestroy(plan.product);
  }
  library.destroy(handle);
}

void DeviceMatmul::check(int status, const char *call, const std::string &what) const {
  if (status != Success)
    fail(device.describe(), ": ", call, what.empty() ? "" : " for ", what, ": ", library.getStatusName(status));
}

static std::string describe(const drover_matmul &d) {
  return concat(dtypeName(DType(d.dtype_ab)), " to ", dtypeName(DType(d.dtype_c)), ", ", d.m, "x", d.n, "x", d.k,
                d.trans_a ? ", a transposed" : "", d.trans_b ? ", b transposed" : "", ", rows of ", d.lda, " ", d.ldb,
                " ", d.ldc, ", ", d.batch, " at ", d.stride_a, " ", d.stride_b, " ", d.stride_c);
}

static int typeOf(int32_t dtype) { return dtype == DROVER_BF16 ? Bfloat16 : Float32; }

/// Row-major C = A B is column-major C' = B' A': the first factor of cuBLASLt is b.
void DeviceMatmul::makeLayouts(const drover_matmul &d, Plan &plan) {
  std::string what = describe(d);
  auto layout = [&](Handle &handle, int32_t dtype, int64_t rows, int64_t columns, int64_t leading, int64_t stride) {
    check(library.layoutCreate(&handle, typeOf(dtype), uint64_t(columns), uint64_t(rows), leading),
          "cublasLtMatrixLayoutCreate", what);
    auto batch = int32_t(d.batch);
    check(library.layoutSet(handle, BatchCount, &batch, sizeof(batch)), "cublasLtMatrixLayoutSetAttribute", what);
    check(library.layoutSet(handle, BatchStride, &stride, sizeof(stride)), "cublasLtMatrixLayoutSetAttribute", what);
  };
  layout(plan.first, d.dtype_ab, d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n, d.ldb, d.stride_b);
  layout(plan.second, d.dtype_ab, d.trans_a ? d.k : d.m, d.trans_a ? d.m : d.k, d.lda, d.stride_a);
  layout(plan.result, d.dtype_c, d.m, d.n, d.ldc, d.stride_c);
  check(library.matmulDescCreate(&plan.product, ComputeFloat32, Float32), "cublasLtMatmulDescCreate", what);
  int32_t first = d.trans_b ? Transpose : None, second = d.trans_a ? Transpose : None;
  check(library.matmulDescSet(plan.product, TransposeA, &first, sizeof(first)), "cublasLtMatmulDescSetAttribute", what);
  check(library.matmulDescSet(plan.product, TransposeB, &second, sizeof(second)), "cublasLtMatmulDescSetAttribute",
        what);
  if (sms)
    check(library.matmulDescSet(plan.product, SmCountTarget, &sms, sizeof(sms)), "cublasLtMatmulDescSetAttribute",
          what);
}

Algorithm DeviceMatmul::propose(const Plan &plan, const std::string &what) {
  Handle preference = nullptr;
  check(library.preferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", what);
  size_t bytes = workspaceBytes;
  uint32_t schemes = reduceInComputeType;
  library.preferenceSet(preference, MaxWorkspaceBytes, &bytes, sizeof(bytes));
  library.preferenceSet(preference, ReductionSchemes, &schemes, sizeof(schemes));
  for (int which : {AlignmentA, AlignmentB, AlignmentC, AlignmentD})
    library.preferenceSet(preference, which, &alignment, sizeof(alignment));
  HeuristicResult result = {};
  int found = 0;
  int status = library.getHeuristic(handle, plan.product, plan.first, plan.second, plan.result, plan.result, preference,
                                    1, &result, &found);
  library.preferenceDestroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic", what);
  if (found == 0)
    fail(device.describe(), ": cuBLASLt has no algorithm for ", what);
  return result.algorithm;
}

DeviceMatmul::Plan &DeviceMatmul::planOf(const drover_matmul &description) {
  std::string what = describe(description);
  auto [place, isNew] = plans.try_emplace(what);
  Plan &plan = place->second;
  if (!isNew)
    return plan;
  makeLayouts(description, plan);
  // Without the device's number: ranks have the same kind.
  std::string kind = device.describe();
  kind = kind.substr(std::min(kind.find('('), kind.size()));
  MatmulAlgorithms::Algorithm chosen = algorithms.choose(
      concat(what, "; ", kind, sms ? concat(" on ", sms, " SMs") : "", ", cuBLASLt ", library.getVersion()), [&] {
        Algorithm own = propose(plan, what);
        MatmulAlgorithms::Algorithm words;
        std::copy(std::begin(own.data), std::end(own.data), words.begin());
        return words;
      });
  std::copy(chosen.begin(), chosen.end(), plan.algorithm.data);
  return plan;
}

void DeviceMatmul::run(const drover_matmul &description, const void *a, const void *b, void *c, bool add) {
  if (description.m == 0 || description.n == 0 || description.batch == 0)
    return;
  Plan &plan = planOf(description);
  float one = 1, beta = add ? 1 : 0;
  check(library.matmul(handle, plan.product, &one, b, plan.first, a, plan.second, &beta, c, plan.result, c, plan.result,
                       &plan.algorithm, workspace.data(), workspaceBytes, CudaDevice::handleOf(stream)),
        "cublasLtMatmul", describe(description));
}

} // namespace drover::rt
