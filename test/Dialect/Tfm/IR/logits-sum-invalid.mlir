// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_labels_of_another_shape(%l: tensor<2x3x8xf32>, %y: tensor<2x4xi64>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{expects rows of shape [2x3], not [2x4]}}
  %s, %t = tfm.logits_sum %l, %y, %m : (tensor<2x3x8xf32>, tensor<2x4xi64>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @c1_target_of_another_shape(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{expects result 1 to have shape [2x3], not [2x8]}}
  %s, %t = tfm.logits_sum %l, %y, %m : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @c1_logits_of_rank_0(%l: tensor<f32>, %y: tensor<i64>, %m: tensor<f32>) {
  // expected-error@+1 {{expects logits of rank 1 or more}}
  %s, %t = tfm.logits_sum %l, %y, %m : (tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @c2_sum_in_bf16(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{expects a sum of 'f32', not 'bf16'}}
  %s, %t = tfm.logits_sum %l, %y, %m : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> (tensor<2x3xbf16>, tensor<2x3xf32>)
  return
}

// -----

func.func @c3_offset_in_f32(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %o: tensor<f32>) {
  // expected-error@+1 {{must be 0D tensor of 64-bit signless integer values, but got 'tensor<f32>'}}
  %s, %t = tfm.logits_sum %l, %y, %m offset %o : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @c4_negative_vocabulary(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{expects a positive vocabulary, not -1}}
  %s, %t = tfm.logits_sum %l, %y, %m {vocabulary = -1 : i64} : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}
