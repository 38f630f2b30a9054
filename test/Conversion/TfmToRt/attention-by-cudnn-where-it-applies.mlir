// RUN: %drover-opt %s --split-input-file --verify-diagnostics --convert-tfm-to-rt="target=cuda attention=cudnn" | FileCheck %s

// CHECK-LABEL: func.func private @causal(
// CHECK: rt.attention
// CHECK-NOT: rt.gpu_launch
func.func private @causal(%q: tensor<1x128x512xbf16>, %k: tensor<1x128x256xbf16>, %v: tensor<1x128x256xbf16>) -> (tensor<1x128x512xbf16>, tensor<1x8x128xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 8 : i64, num_kv_heads = 4 : i64, scale = 0.125 : f64} : (tensor<1x128x512xbf16>, tensor<1x128x256xbf16>, tensor<1x128x256xbf16>) -> (tensor<1x128x512xbf16>, tensor<1x8x128xf32>)
  return %o, %l : tensor<1x128x512xbf16>, tensor<1x8x128xf32>
}

// -----

// Its workspace has a number of bf16 for each pair of query and key.
// CHECK-LABEL: func.func private @grad(
// CHECK-SAME: drover.workspace_bytes = 1581056 : i64
// CHECK: rt.attention_grad
// CHECK-NOT: rt.gpu_launch
func.func private @grad(%q: tensor<1x128x512xbf16>, %k: tensor<1x128x512xbf16>, %l: tensor<1x8x128xf32>) -> (tensor<1x128x512xbf16>, tensor<1x128x512xbf16>, tensor<1x128x512xbf16>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %k, %q, %l, %q causal top_left {num_heads = 8 : i64, num_kv_heads = 8 : i64, scale = 0.125 : f64} : (tensor<1x128x512xbf16>, tensor<1x128x512xbf16>, tensor<1x128x512xbf16>, tensor<1x128x512xbf16>, tensor<1x8x128xf32>, tensor<1x128x512xbf16>) -> (tensor<1x128x512xbf16>, tensor<1x128x512xbf16>, tensor<1x128x512xbf16>)
  return %dq, %dk, %dv : tensor<1x128x512xbf16>, tensor<1x128x512xbf16>, tensor<1x128x512xbf16>
}

// -----

// CHECK-LABEL: func.func private @documents(
// CHECK-NOT: rt.attention
// CHECK: rt.gpu_launch
func.func private @documents(%q: tensor<1x128x64xbf16>, %m: tensor<1x128xi32>) -> tensor<1x128x64xbf16> attributes {tfm.body = "forward"} {
  // expected-warning @below {{attention is computed by a generated kernel, since cuDNN's is not taken for documents}}
  %o, %l = tfm.attention %q, %q, %q documents %m causal top_left {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.125 : f64} : (tensor<1x128x64xbf16>, tensor<1x128x64xbf16>, tensor<1x128x64xbf16>, tensor<1x128xi32>) -> (tensor<1x128x64xbf16>, tensor<1x1x128xf32>)
  return %o : tensor<1x128x64xbf16>
}

// -----

// CHECK-LABEL: func.func private @wide_gradients(
// CHECK-NOT: rt.attention
func.func private @wide_gradients(%q: tensor<1x128x64xbf16>, %l: tensor<1x1x128xf32>) -> (tensor<1x128x64xbf16>, tensor<1x128x64xf32>) attributes {tfm.body = "backward"} {
  // expected-warning @below {{attention is computed by a generated kernel, since cuDNN's is not taken for gradients of keys and values in f32, which are summed over ranks}}
  %dq, %dk, %dv = tfm.attention_grad %q, %q, %q, %q, %l, %q causal top_left {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.125 : f64} : (tensor<1x128x64xbf16>, tensor<1x128x64xbf16>, tensor<1x128x64xbf16>, tensor<1x128x64xbf16>, tensor<1x1x128xf32>, tensor<1x128x64xbf16>) -> (tensor<1x128x64xbf16>, tensor<1x128x64xf32>, tensor<1x128x64xf32>)
  return %dq, %dk : tensor<1x128x64xbf16>, tensor<1x128x64xf32>
}
