// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_gradient_of_another_shape(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %o: tensor<2x3x8xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x3x12xf32>) {
  // expected-error@+1 {{expects result and gradient of shape [2x3x8], not [2x3x12]}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2x3x12xf32>) -> (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @c1_result_of_another_shape(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %o: tensor<2x5x8xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects result and gradient of shape [2x3x8], not [2x5x8]}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x5x8xf32>, tensor<2x4x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @c1_log_sum_exp_of_another_shape(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %o: tensor<2x3x8xf32>, %l: tensor<2x3x4xf32>, %d: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects log_sum_exp of shape [2x4x3], not [2x3x4]}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @c2_key_grad_of_another_shape(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %o: tensor<2x3x8xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects result 1 to have shape [2x5x6], not [2x5x4]}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x12xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @c3_kv_heads_divide_not(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %o: tensor<2x3x8xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects kv heads (0) to divide query heads (4)}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %d {num_heads = 4 : i64, num_kv_heads = 0 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @c3_head_sizes_differ(%q: tensor<2x3x12xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x4xf32>, %o: tensor<2x3x8xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x3x8xf32>) {
  // expected-error@+1 {{expects equal head sizes of query and key, not 3 and 4}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x8xf32>, tensor<2x5x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @c1_gradient_of_another_type(%q: tensor<2x8x64xf32>, %l: tensor<2x4x8xf32>, %dy: tensor<2x8x64xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0, %1, %2 = tfm.attention_grad %q, %q, %q, %q, %l, %dy {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 1.0 : f64} : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x4x8xf32>, tensor<2x8x64xbf16>) -> (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>)
  return
}
