// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_gradient_of_another_shape(%p: tensor<4xf32>, %g: tensor<5xf32>, %h: tensor<8xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [4] and [5]}}
  %p1 = tfm.sgd %p, %g, %h : (tensor<4xf32>, tensor<5xf32>, tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @c1_hyper_of_another_size(%p: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<9xf32>) {
  // expected-error@+1 {{expects hyper to have shape [8], not [9]}}
  %p1 = tfm.sgd %p, %g, %h : (tensor<4xf32>, tensor<4xf32>, tensor<9xf32>) -> tensor<4xf32>
  return
}
