// RUN: %drover-opt %s --convert-tfm-to-rt=target=cuda --split-input-file --verify-diagnostics

func.func private @body(%q: tensor<1x4x264xf32>, %k: tensor<1x4x264xf32>, %v: tensor<1x4x128xf32>) -> tensor<1x4x128xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'tfm.attention' op expects heads of at most 256 elements for the cuda target, not 264}}
  %o, %l = tfm.attention %q, %k, %v {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x264xf32>, tensor<1x4x264xf32>, tensor<1x4x128xf32>) -> (tensor<1x4x128xf32>, tensor<1x1x4xf32>)
  return %o : tensor<1x4x128xf32>
}

// -----

func.func private @body(%q: tensor<1x4x8xf32>, %k: tensor<1x4x8xf32>, %v: tensor<1x4x264xf32>, %o: tensor<1x4x264xf32>, %l: tensor<1x1x4xf32>) -> tensor<1x4x8xf32> attributes {tfm.body = "backward"} {
  // expected-error @below {{'tfm.attention_grad' op expects heads of at most 256 elements for the cuda target, not 264}}
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %o {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x264xf32>, tensor<1x4x264xf32>, tensor<1x1x4xf32>, tensor<1x4x264xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x264xf32>)
  return %dq : tensor<1x4x8xf32>
}

// -----

func.func private @body(%q: tensor<1x4x8xf16>) -> tensor<1x4x8xf16> attributes {tfm.body = "forward"} {
  // expected-error @below {{'tfm.attention' op is supported in f32 and bf16 by the cuda target, not in 'f16'}}
  %o, %l = tfm.attention %q, %q, %q {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x8xf16>, tensor<1x4x8xf16>, tensor<1x4x8xf16>) -> (tensor<1x4x8xf16>, tensor<1x1x4xf32>)
  return %o : tensor<1x4x8xf16>
}

// -----

func.func private @body(%x: tensor<2x2xf32>) -> tensor<2x2xf32> attributes {tfm.body = "forward"} {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  // expected-error @below {{'tfm.matmul' op reads constant data, which the cuda target has in kernels only}}
  %0 = tfm.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
