//===- cublaslt.cpp - the stand-in cuBLASLt -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Products of f32 and bf16 with sums in f32, in the order of the depth.
#include "device/CublasLtApi.h"
#include "driver.h"
#include "drover/rt/dtype.h"
#include "emu.h"
#include <cstring>

using namespace drover::standin;
using namespace drover::rt::cublaslt;

#define DROVER_DECLARE(result, member, symbol, parameters) extern "C" result symbol parameters;
DROVER_CUBLASLT_FUNCTIONS(DROVER_DECLARE)
#undef DROVER_DECLARE

namespace {
struct Layout {
  int type = Float32;
  int64_t rows = 0, columns = 0, leading = 0, stride = 0;
  int32_t batch = 1;

  size_t elementBytes() const { return type == Bfloat16 ? 2 : 4; }
};
struct Product {
  int32_t transposes[2] = {None, None};
  int32_t sms = 0; // 0: all
};
struct Preference {
  size_t workspaceBytes = 0;
};

/// The mark of the one algorithm that there is.
constexpr uint64_t algorithmMark = 0x64726f766572;

/// A matrix where it lies.
struct Matrix {
  Layout layout;
  char *base;

  char *at(int64_t which, int64_t row, int64_t column) const {
    return base + size_t(which * layout.stride + column * layout.leading + row) * layout.elementBytes();
  }
  float load(int64_t which, int64_t row, int64_t column) const {
    const char *from = at(which, row, column);
    if (layout.type == Bfloat16) {
      uint16_t bits;
      std::memcpy(&bits, from, sizeof(bits));
      return drover::rt::bfloatToFloat(bits);
    }
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  void store(int64_t which, int64_t row, int64_t column, float value) const {
    char *to = at(which, row, column);
    if (layout.type == Bfloat16) {
      uint16_t bits = drover::rt::floatToBfloat(value);
      std::memcpy(to, &bits, sizeof(bits));
    } else {
      std::memcpy(to, &value, sizeof(value));
    }
  }
  /// Calls fn(first byte, bytes) for each range of neighbouring bytes; false where one says so.
  template <typename Fn> bool forEachRange(Fn &&fn) const {
    bool dense = layout.leading == layout.rows;
    int64_t ranges = dense ? 1 : layout.columns, size = dense ? layout.rows * layout.columns : layout.rows;
    for (int64_t which = 0; which < layout.batch; ++which)
      for (int64_t column = 0; column < ranges; ++column)
        if (!fn(at(which, 0, column), size_t(size) * layout.elementBytes()))
          return false;
    return true;
  }
  bool touch(const Work &work, bool written) const {
    return forEachRange([&](char *base, size_t bytes) { return Memory::instance().touch(work, base, bytes, written); });
  }
};

void checkWritten(const Work &work, const Matrix &matrix, const char *which) {
  bool written =
      matrix.forEachRange([](char *base, size_t bytes) { return drover_emu_memory_unwritten(base, bytes) == nullptr; });
  if (!written)
    report("cublasLt: init: " + work.what + " reads what nobody wrote in " + which);
}

void multiply(const Matrix &a, const Matrix &b, const Matrix &d, const Product &product, float alpha, float beta) {
  int64_t rows = d.layout.rows, columns = d.layout.columns;
  int64_t depth = product.transposes[0] == Transpose ? a.layout.rows : a.layout.columns;
  std::vector<float> packed(size_t(rows * depth)), sums(static_cast<size_t>(rows));
  for (int64_t which = 0; which < d.layout.batch; ++which) {
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t i = 0; i < rows; ++i)
        packed[size_t(p * rows + i)] = product.transposes[0] == Transpose ? a.load(which, p, i) : a.load(which, i, p);
    for (int64_t j = 0; j < columns; ++j) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t p = 0; p < depth; ++p) {
        float factor = product.transposes[1] == Transpose ? b.load(which, j, p) : b.load(which, p, j);
        const float *column = packed.data() + p * rows;
        for (int64_t i = 0; i < rows; ++i)
          sums[size_t(i)] += column[i] * factor;
      }
      for (int64_t i = 0; i < rows; ++i)
        d.store(which, i, j, alpha * sums[size_t(i)] + (beta != 0 ? beta * d.load(which, i, j) : 0.0f));
    }
  }
}

bool fit(const Product &product, const Layout &a, const Layout &b, const Layout &d) {
  bool transposeA = product.transposes[0] == Transpose, transposeB = product.transposes[1] == Transpose;
  return (transposeA ? a.columns : a.rows) == d.rows && (transposeB ? b.rows : b.columns) == d.columns &&
         (transposeA ? a.rows : a.columns) == (transposeB ? b.columns : b.rows) && a.batch == d.batch &&
         b.batch == d.batch && a.type == b.type && a.leading >= a.rows && b.leading >= b.rows && d.leading >= d.rows;
}
} // namespace

extern "C" {

int cublasLtCreate(Handle *handle) {
  if (currentDevice() < 0)
    return NotInitialized;
  *handle = new int(currentDevice());
  return Success;
}

int cublasLtDestroy(Handle handle) {
  delete static_cast<int *>(handle);
  return Success;
}

size_t cublasLtGetVersion() { return 130000; }

const char *cublasLtGetStatusName(int status) {
  switch (status) {
  case Success:
    return "CUBLAS_STATUS_SUCCESS";
  case NotInitialized:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case InvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  default:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
}

int cublasLtMatmulDescCreate(Handle *handle, int compute, int scale) {
  if (compute != ComputeFloat32 || scale != Float32)
    return NotSupported;
  *handle = new Product;
  return Success;
}

int cublasLtMatmulDescDestroy(Handle handle) {
  delete static_cast<Product *>(handle);
  return Success;
}

int cublasLtMatmulDescSetAttribute(Handle handle, int attribute, const void *value, size_t bytes) {
  if (attribute == SmCountTarget && bytes == sizeof(int32_t)) {
    std::memcpy(&static_cast<Product *>(handle)->sms, value, bytes);
    return Success;
  }
  if ((attribute != TransposeA && attribute != TransposeB) || bytes != sizeof(int32_t))
    return InvalidValue;
  std::memcpy(&static_cast<Product *>(handle)->transposes[attribute - TransposeA], value, bytes);
  return Success;
}

int cublasLtMatrixLayoutCreate(Handle *handle, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (type != Float32 && type != Bfloat16)
    return NotSupported;
  *handle = new Layout{type, int64_t(rows), int64_t(columns), leading, 0, 1};
  return Success;
}

int cublasLtMatrixLayoutDestroy(Handle handle) {
  delete static_cast<Layout *>(handle);
  return Success;
}

int cublasLtMatrixLayoutSetAttribute(Handle handle, int attribute, const void *value, size_t bytes) {
  auto *layout = static_cast<Layout *>(handle);
  if (attribute == BatchCount && bytes == sizeof(layout->batch))
    std::memcpy(&layout->batch, value, bytes);
  else if (attribute == BatchStride && bytes == sizeof(layout->stride))
    std::memcpy(&layout->stride, value, bytes);
  else
    return InvalidValue;
  return Success;
}

int cublasLtMatmulPreferenceCreate(Handle *handle) {
  *handle = new Preference;
  return Success;
}

int cublasLtMatmulPreferenceDestroy(Handle handle) {
  delete static_cast<Preference *>(handle);
  return Success;
}

int cublasLtMatmulPreferenceSetAttribute(Handle handle, int attribute, const void *value, size_t bytes) {
  if (attribute == MaxWorkspaceBytes)
    std::memcpy(&static_cast<Preference *>(handle)->workspaceBytes, value, bytes);
  return Success;
}

int cublasLtMatmulAlgoGetHeuristic(Handle, Handle product, Handle a, Handle b, Handle c, Handle d, Handle preference,
                                   int requested, HeuristicResult *results, int *found) {
  *found = 0;
  if (requested < 1 || !fit(*static_cast<Product *>(product), *static_cast<Layout *>(a), *static_cast<Layout *>(b),
                            *static_cast<Layout *>(d)))
    return InvalidValue;
  results[0] = {};
  results[0].algorithm.data[0] = algorithmMark;
  results[0].algorithm.data[1] = uint64_t(static_cast<Product *>(product)->sms); // it is made for so many
  results[0].workspaceBytes = static_cast<Preference *>(preference)->workspaceBytes;
  *found = 1;
  return Success;
}

int cublasLtMatmul(Handle, Handle productHandle, const void *alpha, const void *a, Handle aLayout, const void *b,
                   Handle bLayout, const void *beta, const void *c, Handle cLayout, void *d, Handle dLayout,
                   const Algorithm *algorithm, void *workspace, size_t workspaceBytes, Handle streamHandle) {
  Stream *stream = streamOf(streamHandle, "cublasLtMatmul");
  Product product = *static_cast<Product *>(productHandle);
  auto matrix = [](const void *base, Handle layout) {
    return Matrix{*static_cast<Layout *>(layout), static_cast<char *>(const_cast<void *>(base))};
  };
  Matrix first = matrix(a, aLayout), second = matrix(b, bLayout), result = matrix(d, dLayout);
  bool known = algorithm && algorithm->data[0] == algorithmMark && algorithm->data[1] == uint64_t(product.sms);
  if (!stream || !known || c != d || !fit(product, first.layout, second.layout, result.layout)) {
    report("cublasLt: a product of matrices that do not fit, or with an algorithm of another library or for another "
           "number of "
           "multiprocessors");
    return InvalidValue;
  }
  float scale, keep;
  std::memcpy(&scale, alpha, sizeof(scale));
  std::memcpy(&keep, beta, sizeof(keep));
  Engine::instance().enqueue(*stream, "matmul on " + describe(*stream), [=](const Work &work) {
    bool fine = first.touch(work, false) && second.touch(work, false);
    // The workspace belongs to the product while it runs.
    fine = fine && Memory::instance().touch(work, workspace, workspaceBytes, true);
    fine = fine && (keep == 0 || result.touch(work, false)) && result.touch(work, true);
    if (!fine)
      return;
    checkWritten(work, first, "the first matrix");
    checkWritten(work, second, "the second matrix");
    if (keep != 0)
      checkWritten(work, result, "the result that it adds to");
    multiply(first, second, result, product, scale, keep);
    result.forEachRange([](char *base, size_t bytes) {
      drover_emu_memory_written(base, bytes);
      return true;
    });
  });
  return Success;
}

} // extern "C"
