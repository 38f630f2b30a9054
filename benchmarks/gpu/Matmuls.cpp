//===- Matmuls.cpp - gpu-benchmark: products ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A line of the file: NAME M N K TRANS_A TRANS_B RESULT (bf16 or f32), of row-major bf16 matrices. Called directly, the
// fastest of the eight algorithms that cuBLASLt proposes with the same workspace counts.
#include "Bench.h"
#include "device/CudaDevice.h"
#include "device/DeviceMatmul.h"
#include "drover/rt/body_device.h"
#include "drover/rt/error.h"
#include <cstdio>
#include <fstream>
#include <sstream>

using namespace drover;
using namespace drover::bench;
namespace lt = drover::rt::cublaslt;

namespace {
constexpr size_t workspaceBytes = size_t(32) << 20;

struct Shape {
  std::string name, result;
  int64_t m = 0, n = 0, k = 0;
  int transA = 0, transB = 0;
};

/// cuBLASLt without what the runtime does around it.
class Direct {
public:
  Direct(rt::Device &device) : device(device), library(""), workspace(device.allocate(int64_t(workspaceBytes))) {
    check(library.create(&handle));
  }
  ~Direct() { library.destroy(handle); }

  double secondsOf(const Shape &shape, const void *a, const void *b, void *c, double seconds) {
    lt::Handle product, first, second, result, preference;
    check(library.matmulDescCreate(&product, lt::ComputeFloat32, lt::Float32));
    int32_t transFirst = shape.transB ? lt::Transpose : lt::None, transSecond = shape.transA ? lt::Transpose : lt::None;
    check(library.matmulDescSet(product, lt::TransposeA, &transFirst, sizeof(int32_t)));
    check(library.matmulDescSet(product, lt::TransposeB, &transSecond, sizeof(int32_t)));
    auto layout = [&](lt::Handle &made, int type, int64_t rows, int64_t columns) {
      check(library.layoutCreate(&made, type, uint64_t(columns), uint64_t(rows), columns));
    };
    layout(first, lt::Bfloat16, shape.transB ? shape.n : shape.k, shape.transB ? shape.k : shape.n);
    layout(second, lt::Bfloat16, shape.transA ? shape.k : shape.m, shape.transA ? shape.m : shape.k);
    layout(result, shape.result == "f32" ? lt::Float32 : lt::Bfloat16, shape.m, shape.n);
    check(library.preferenceCreate(&preference));
    check(library.preferenceSet(preference, lt::MaxWorkspaceBytes, &workspaceBytes, sizeof(workspaceBytes)));
    std::vector<lt::HeuristicResult> found(8);
    int count = 0;
    check(library.getHeuristic(handle, product, first, second, result, result, preference, int(found.size()),
                               found.data(), &count));
    float one = 1, zero = 0;
    double best = 1e30;
    for (int i = 0; i < count; ++i)
      best = std::min(
          best, timeOf(device, {[&] {
                         check(library.matmul(handle, product, &one, b, first, a, second, &zero, c, result, c, result,
                                              &found[size_t(i)].algorithm, workspace.data(), workspaceBytes,
                                              rt::CudaDevice::handleOf(device.stream(DROVER_STREAM_COMPUTE))));
                       }},
                       seconds / 2));
    library.preferenceDestroy(preference);
    for (lt::Handle made : {first, second, result})
      library.layoutDestroy(made);
    library.matmulDescDestroy(product);
    return best;
  }

private:
  void check(int status) const {
    if (status != lt::Success)
      rt::fail("cuBLASLt: ", library.getStatusName(status));
  }

  rt::Device &device;
  rt::CublasLtLibrary library;
  lt::Handle handle = nullptr;
  rt::DeviceMemory workspace;
};

drover_matmul descriptionOf(const Shape &shape) {
  drover_matmul d = {};
  d.dtype_ab = DROVER_BF16;
  d.dtype_c = shape.result == "f32" ? DROVER_F32 : DROVER_BF16;
  d.trans_a = shape.transA;
  d.trans_b = shape.transB;
  d.store = DROVER_OVERWRITE;
  d.m = shape.m;
  d.n = shape.n;
  d.k = shape.k;
  d.lda = shape.transA ? shape.m : shape.k;
  d.ldb = shape.transB ? shape.k : shape.n;
  d.ldc = shape.n;
  d.batch = 1;
  d.stride_a = shape.m * shape.k;
  d.stride_b = shape.k * shape.n;
  d.stride_c = shape.m * shape.n;
  return d;
}
} // namespace

int bench::runMatmuls(rt::Device &device, const std::string &file, double seconds) {
  std::ifstream input(file);
  if (!input)
    rt::fail(file, ": cannot be read");
  rt::MatmulAlgorithms algorithms;
  drover_device body(device, device.stream(DROVER_STREAM_COMPUTE));
  body.openMatmul(algorithms);
  Direct direct(device);
  drover_call call = {};
  call.device = &body;
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    Shape shape;
    if (!(words >> shape.name >> shape.m >> shape.n >> shape.k >> shape.transA >> shape.transB >> shape.result))
      rt::fail(file, ": expected NAME M N K TRANS_A TRANS_B RESULT, not '", line, "'");
    rt::DeviceMemory a = device.allocate(shape.m * shape.k * 2), b = device.allocate(shape.k * shape.n * 2),
                     c = device.allocate(shape.m * shape.n * 4);
    // 0x3c3c of bf16 is 0.0115: numbers, and power, as in a model.
    device.fill(a.data(), 0x3c, a.size(), body.stream);
    device.fill(b.data(), 0x3c, b.size(), body.stream);
    drover_matmul d = descriptionOf(shape);
    double own = timeOf(device, {[&] {
                          drover_rt_matmul(&call, &d, a.data(), b.data(), c.data());
                          body.check();
                        }},
                        seconds);
    double theirs = direct.secondsOf(shape, a.data(), b.data(), c.data(), seconds);
    std::printf("{\"name\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"flops\": %.6g, \"seconds\": %.9g, "
                "\"direct_seconds\": %.9g}\n",
                shape.name.c_str(), static_cast<long long>(shape.m), static_cast<long long>(shape.n),
                static_cast<long long>(shape.k), 2.0 * double(shape.m) * double(shape.n) * double(shape.k), own,
                theirs);
    std::fflush(stdout);
  }
  return 0;
}
