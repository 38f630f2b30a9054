// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_value_of_another_shape(%a: tensor<4xf32>, %v: tensor<5xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [4] and [5]}}
  %0 = tfm.accumulate %a, %v : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @c1_accumulator_in_bf16(%a: tensor<4xbf16>, %v: tensor<4xbf16>) {
  // expected-error@+1 {{expects an accumulator of f32 or f64, not 'bf16'}}
  %0 = tfm.accumulate %a, %v : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  return
}

// -----

func.func @c1_result_in_bf16(%a: tensor<4xf32>, %v: tensor<4xbf16>) {
  // expected-error@+1 {{expects a result of 'f32', not 'bf16'}}
  %0 = tfm.accumulate %a, %v : (tensor<4xf32>, tensor<4xbf16>) -> tensor<4xbf16>
  return
}
