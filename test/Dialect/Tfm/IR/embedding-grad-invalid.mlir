// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_gradient_of_another_length(%ids: tensor<3xi64>, %dy: tensor<4x2xf32>) {
  // expected-error@+1 {{expects gradient to have the shape of ids and one more size, not [4x2] for [3]}}
  %0 = tfm.embedding_grad %ids, %dy : (tensor<3xi64>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @c1_gradient_of_the_rank_of_ids(%ids: tensor<3xi64>, %dy: tensor<3xf32>) {
  // expected-error@+1 {{expects gradient to have the shape of ids and one more size, not [3] for [3]}}
  %0 = tfm.embedding_grad %ids, %dy : (tensor<3xi64>, tensor<3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @c2_result_of_rank_1(%ids: tensor<3xi64>, %dy: tensor<3x2xf32>) {
  // expected-error@+1 {{expects a result of rank 2, not [8]}}
  %0 = tfm.embedding_grad %ids, %dy : (tensor<3xi64>, tensor<3x2xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @c2_result_in_bf16(%ids: tensor<3xi64>, %dy: tensor<3x2xbf16>) {
  // expected-error@+1 {{result #0 must be ranked tensor of 32-bit float values}}
  %0 = tfm.embedding_grad %ids, %dy : (tensor<3xi64>, tensor<3x2xbf16>) -> tensor<8x2xbf16>
  return
}

// -----

func.func @c3_offset_in_i32(%ids: tensor<3xi64>, %d: tensor<3x2xf32>, %o: tensor<i32>) {
  // expected-error@+1 {{must be 0D tensor of 64-bit signless integer values, but got 'tensor<i32>'}}
  %0 = tfm.embedding_grad %ids, %d offset %o : (tensor<3xi64>, tensor<3x2xf32>, tensor<i32>) -> tensor<4x2xf32>
  return
}
