// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_labels_of_another_shape(%l: tensor<2x3x8xf32>, %y: tensor<3x2xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %seed: tensor<f32>) {
  // expected-error@+1 {{expects rows of shape [2x3], not [3x2]}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<2x3x8xf32>, tensor<3x2xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c1_result_of_another_shape(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %seed: tensor<f32>) {
  // expected-error@+1 {{expects result 0 to have shape [2x3x8], not [2x3]}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_maximum_in_bf16(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xbf16>, %s: tensor<2x3xf32>, %seed: tensor<f32>) {
  // expected-error@+1 {{expects a maximum of 'f32', not 'bf16'}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xbf16>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c2_seed_of_rank_1(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %seed: tensor<1xf32>) {
  // expected-error@+1 {{expects a seed of rank 0, not [1]}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c2_seed_in_f64(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %seed: tensor<f64>) {
  // expected-error@+1 {{expects a seed of 'f32', not 'f64'}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c3_offset_in_i32(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %seed: tensor<f32>, %o: tensor<i32>) {
  // expected-error@+1 {{must be 0D tensor of 64-bit signless integer values, but got 'tensor<i32>'}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed offset %o : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<i32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c4_negative_vocabulary(%l: tensor<2x3x8xf32>, %y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %seed: tensor<f32>) {
  // expected-error@+1 {{expects a positive vocabulary, not -5}}
  %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed {vocabulary = -5 : i64} : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  return
}
