// RUN: %drover-opt %s --mlir-very-unsafe-disable-verifier-on-parsing --verify-each=false --mlir-disable-threading --tfm-raise-norms 2>&1 | FileCheck %s

// A number that equals nothing is not shortened for ever.
// CHECK: tfm.rms_norm
// CHECK-SAME: 0x7FF8000000000000
func.func @model(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = tfm.rms_norm %x {eps = 0x7FF8000000000000 : f64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
