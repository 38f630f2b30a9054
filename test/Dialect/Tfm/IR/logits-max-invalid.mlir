// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_result_of_another_shape(%l: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [2x3], not [2x8]}}
  %m = tfm.logits_max %l : (tensor<2x3x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @c1_result_in_bf16(%l: tensor<2x3x8xbf16>) {
  // expected-error@+1 {{expects a maximum of 'f32', not 'bf16'}}
  %m = tfm.logits_max %l : (tensor<2x3x8xbf16>) -> tensor<2x3xbf16>
  return
}

// -----

func.func @c1_logits_of_rank_0(%l: tensor<f32>) {
  // expected-error@+1 {{expects logits of rank 1 or more}}
  %m = tfm.logits_max %l : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @c2_offset_of_rank_1(%l: tensor<2x3x8xf32>, %o: tensor<1xi64>) {
  // expected-error@+1 {{must be 0D tensor of 64-bit signless integer values, but got 'tensor<1xi64>'}}
  %m = tfm.logits_max %l offset %o : (tensor<2x3x8xf32>, tensor<1xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @c3_no_vocabulary(%l: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects a positive vocabulary, not 0}}
  %m = tfm.logits_max %l {vocabulary = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  return
}
