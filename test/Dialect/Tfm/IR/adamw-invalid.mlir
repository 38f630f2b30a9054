// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_hyper_of_another_size(%p: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<7xf32>) {
  // expected-error@+1 {{expects hyper to have shape [8], not [7]}}
  %p1, %m1, %v1 = tfm.adamw %p, %m, %v, %g, %h : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<7xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c1_hyper_of_rank_0(%p: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<f32>) {
  // expected-error@+1 {{expects hyper to have shape [8], not []}}
  %p1, %m1, %v1 = tfm.adamw %p, %m, %v, %g, %h : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c1_moment_of_another_shape(%p: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<5xf32>, %h: tensor<8xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [4] and [5]}}
  %p1, %m1, %v1 = tfm.adamw %p, %m, %v, %g, %h : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c1_parameter_in_bf16(%p: tensor<4xbf16>, %m: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<8xf32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor of 32-bit float values}}
  %p1, %m1, %v1 = tfm.adamw %p, %m, %v, %g, %h : (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
