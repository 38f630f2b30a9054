// RUN: %drover-opt %s --tfm-outline | FileCheck %s
// RUN: %python %S/Inputs/models.py llama layers=3 | %drover-opt --tfm-outline=whole=true | FileCheck %s --check-prefix=WHOLE

// CHECK-LABEL: func.func @microbatch(
// CHECK-NEXT: call @layer({{.*}} {tfm.layer = 0 : i64}
// CHECK-NEXT: return
// WHOLE-LABEL: func.func @microbatch(
// WHOLE-NEXT: call @layer({{.*}} {tfm.layer = 0 : i64}
// WHOLE-NEXT: return
func.func @model(%x: tensor<4x8xf32> {tfm.input = "x"}, %w: tensor<16x8xf32> {tfm.parameter = "w"})
    -> (tensor<4x16xf32> {tfm.output = "y"}) {
  %0 = tfm.linear %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %1 = math.tanh %0 : tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
