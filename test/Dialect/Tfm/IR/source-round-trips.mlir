// RUN: %drover-opt %s --verify-roundtrip | FileCheck %s

// CHECK: #tfm.source<file = "a b.onnx", offset = 18446744073709551615, bytes = 8, type = bf16, transposed = true, plus = 1.000000e+00>
func.func @f() attributes {s = #tfm.source<file = "a b.onnx", offset = 18446744073709551615, bytes = 8, type = bf16, transposed = true, plus = 1.0>} {
  return
}
