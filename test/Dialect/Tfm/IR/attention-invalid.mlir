// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_kv_heads_divide_not(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects kv heads (3) to divide query heads (4)}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 3 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c1_no_heads(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects kv heads (2) to divide query heads (0)}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 0 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c1_no_kv_heads(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects kv heads (0) to divide query heads (4)}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 0 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c1_negative_heads(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects kv heads (-2) to divide query heads (-4)}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = -4 : i64, num_kv_heads = -2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c2_query_of_rank_2(%q: tensor<3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects query, key and value of rank 3}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c2_heads_divide_not_the_query(%q: tensor<2x3x10xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects query heads (4) to divide the last size of query [2x3x10]}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x10xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c2_kv_heads_divide_not_the_value(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x5xf32>) {
  // expected-error@+1 {{and kv heads (2) those of key [2x5x6] and value [2x5x5]}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x5xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c2_head_sizes_differ(%q: tensor<2x3x12xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects equal head sizes of query and key, not 3 and 4}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x8xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c3_batches_differ(%q: tensor<2x3x12xf32>, %k: tensor<3x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects equal batches and equal lengths of key and value}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<3x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c3_lengths_differ(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x6x4xf32>) {
  // expected-error@+1 {{expects equal batches and equal lengths of key and value}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x6x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c4_result_of_another_width(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [2x3x8], not [2x3x12]}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x12xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c4_log_sum_exp_of_another_shape(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects result 1 to have shape [2x4x3], not [2x3x4]}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @c4_log_sum_exp_in_bf16(%q: tensor<2x3x12xbf16>, %k: tensor<2x5x6xbf16>, %v: tensor<2x5x4xbf16>) {
  // expected-error@+1 {{expects log_sum_exp of 'f32', not 'bf16'}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xbf16>, tensor<2x5x6xbf16>, tensor<2x5x4xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x4x3xbf16>)
  return
}

// -----

func.func @c4_result_beyond_64_bits(%q: tensor<2x3x4294967296xf32>, %k: tensor<2x5x1xf32>, %v: tensor<2x5x4294967296xf32>) {
  // expected-error@+1 {{expects result 0 to have shape}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4294967296 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<2x3x4294967296xf32>, tensor<2x5x1xf32>, tensor<2x5x4294967296xf32>) -> (tensor<2x4x8xf32>, tensor<2x4294967296x3xf32>)
  return
}

// -----

func.func @c5_mask_of_rank_2(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %m: tensor<3x5xf32>) {
  // expected-error@+1 {{expects a mask that broadcasts to [2x4x3x5], not [3x5]}}
  %0, %1 = tfm.attention %q, %k, %v mask %m {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<3x5xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c5_mask_of_another_length(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %m: tensor<2x4x3x1xi1>) {
  // expected-error@+1 {{expects a mask that broadcasts to [2x4x3x5], not [2x4x3x1]}}
  %0, %1 = tfm.attention %q, %k, %v mask %m {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x4x3x1xi1>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c5_mask_of_another_head_count(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %m: tensor<2x2x3x5xi1>) {
  // expected-error@+1 {{expects a mask that broadcasts to [2x4x3x5], not [2x2x3x5]}}
  %0, %1 = tfm.attention %q, %k, %v mask %m {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x2x3x5xi1>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c6_key_mask_of_another_length(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %m: tensor<2x3xi64>) {
  // expected-error@+1 {{expects a key_mask of shape [2x5], not [2x3]}}
  %0, %1 = tfm.attention %q, %k, %v key_mask %m {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c6_key_mask_of_another_batch(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %m: tensor<3x5xi64>) {
  // expected-error@+1 {{expects a key_mask of shape [2x5], not [3x5]}}
  %0, %1 = tfm.attention %q, %k, %v key_mask %m {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<3x5xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c7_documents_with_more_keys(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %d: tensor<2x3xi32>) {
  // expected-error@+1 {{expects documents of shape [2x5] and as many keys as queries, not [2x3]}}
  %0, %1 = tfm.attention %q, %k, %v documents %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3xi32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c7_documents_of_rank_1(%q: tensor<2x3x12xf32>, %k: tensor<2x3x6xf32>, %v: tensor<2x3x4xf32>, %d: tensor<3xi32>) {
  // expected-error@+1 {{expects documents of shape [2x3] and as many keys as queries, not [3]}}
  %0, %1 = tfm.attention %q, %k, %v documents %d {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x3x6xf32>, tensor<2x3x4xf32>, tensor<3xi32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c8_window_of_zero(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects a positive window, not 0}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64, window = 0 : i64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c8_negative_window(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects a positive window, not -1}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64, window = -1 : i64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c8_softcap_of_zero(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects a positive softcap, not 0}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64, softcap = 0.0 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c8_too_few_alibi_slopes(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>) {
  // expected-error@+1 {{expects 4 alibi_slopes, not 3}}
  %0, %1 = tfm.attention %q, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64, alibi_slopes = array<f32: 1.0, 0.5, 0.25>} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c7_documents_of_the_queries(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %d: tensor<2x3xi32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects documents of shape [2x5]}}
  %0, %1 = tfm.attention %q, %k, %v documents %d query_index %i {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<2x3xi32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c9_query_index_of_the_keys(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{expects a query_index of shape [3], not [5]}}
  %0, %1 = tfm.attention %q, %k, %v query_index %i {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<5xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c9_bottom_right(%q: tensor<2x3x12xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x4xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects causal none or top_left with a query_index, not bottom_right}}
  %0, %1 = tfm.attention %q, %k, %v query_index %i causal bottom_right {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x3x12xf32>, tensor<2x5x6xf32>, tensor<2x5x4xf32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @c10_no_channels(%q: tensor<2x8x0xf32>) {
  // expected-error@+1 {{expects sizes that are not 0, not [2x8x0], [2x8x0] and [2x8x0]}}
  %0, %1 = tfm.attention %q, %q, %q {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 1.0 : f64} : (tensor<2x8x0xf32>, tensor<2x8x0xf32>, tensor<2x8x0xf32>) -> (tensor<2x8x0xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @c10_scale_nan(%q: tensor<2x8x64xf32>) {
  // expected-error@+1 {{expects a finite scale, not nan}}
  %0, %1 = tfm.attention %q, %q, %q {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0x7FF8000000000000 : f64} : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @c11_result_of_another_type(%q: tensor<2x8x64xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0, %1 = tfm.attention %q, %q, %q {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 1.0 : f64} : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x64xbf16>, tensor<2x4x8xf32>)
  return
}
