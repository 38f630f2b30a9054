// Bodies at the sizes of large models: their kernels are assembled, and some are run (CudaKernelsTest.cpp).
func.func private @rms_norm_4096_bf16(%x: tensor<1x64x4096xbf16>, %r: tensor<1x64x4096xbf16>, %w: tensor<4096xbf16>) -> (tensor<1x64x4096xbf16>, tensor<1x64x4096xbf16>) attributes {tfm.body = "forward"} {
  %h = arith.addf %x, %r : tensor<1x64x4096xbf16>
  %y = tfm.rms_norm %h, %w {eps = 1.0e-6 : f64} : (tensor<1x64x4096xbf16>, tensor<4096xbf16>) -> tensor<1x64x4096xbf16>
  return %h, %y : tensor<1x64x4096xbf16>, tensor<1x64x4096xbf16>
}
func.func private @rms_norm_4096_f32(%x: tensor<1x64x4096xf32>, %r: tensor<1x64x4096xf32>, %w: tensor<4096xf32>) -> (tensor<1x64x4096xf32>, tensor<1x64x4096xf32>) attributes {tfm.body = "forward"} {
  %h = arith.addf %x, %r : tensor<1x64x4096xf32>
  %y = tfm.rms_norm %h, %w {eps = 1.0e-6 : f64} : (tensor<1x64x4096xf32>, tensor<4096xf32>) -> tensor<1x64x4096xf32>
  return %h, %y : tensor<1x64x4096xf32>, tensor<1x64x4096xf32>
}
func.func private @rms_norm_16384_bf16(%x: tensor<1x64x16384xbf16>, %r: tensor<1x64x16384xbf16>, %w: tensor<16384xbf16>) -> (tensor<1x64x16384xbf16>, tensor<1x64x16384xbf16>) attributes {tfm.body = "forward"} {
  %h = arith.addf %x, %r : tensor<1x64x16384xbf16>
  %y = tfm.rms_norm %h, %w {eps = 1.0e-6 : f64} : (tensor<1x64x16384xbf16>, tensor<16384xbf16>) -> tensor<1x64x16384xbf16>
  return %h, %y : tensor<1x64x16384xbf16>, tensor<1x64x16384xbf16>
}
func.func private @rms_norm_grad_4096_bf16(%x: tensor<1x512x4096xbf16>, %dy: tensor<1x512x4096xbf16>, %w: tensor<4096xbf16>) -> (tensor<1x512x4096xbf16>, tensor<4096xf32>) attributes {tfm.body = "backward"} {
  %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<1x512x4096xbf16>, tensor<1x512x4096xbf16>, tensor<4096xbf16>) -> (tensor<1x512x4096xbf16>, tensor<4096xf32>)
  return %dx, %dw : tensor<1x512x4096xbf16>, tensor<4096xf32>
}
func.func private @rms_norm_grad_16384_bf16(%x: tensor<1x512x16384xbf16>, %dy: tensor<1x512x16384xbf16>, %w: tensor<16384xbf16>) -> (tensor<1x512x16384xbf16>, tensor<16384xf32>) attributes {tfm.body = "backward"} {
  %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<1x512x16384xbf16>, tensor<1x512x16384xbf16>, tensor<16384xbf16>) -> (tensor<1x512x16384xbf16>, tensor<16384xf32>)
  return %dx, %dw : tensor<1x512x16384xbf16>, tensor<16384xf32>
}
func.func private @rms_norm_grad_4096_f32(%x: tensor<1x512x4096xf32>, %dy: tensor<1x512x4096xf32>, %w: tensor<4096xf32>) -> (tensor<1x512x4096xf32>, tensor<4096xf32>) attributes {tfm.body = "backward"} {
  %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<1x512x4096xf32>, tensor<1x512x4096xf32>, tensor<4096xf32>) -> (tensor<1x512x4096xf32>, tensor<4096xf32>)
  return %dx, %dw : tensor<1x512x4096xf32>, tensor<4096xf32>
}
func.func private @layer_norm_grad_1600_f32(%x: tensor<1x512x1600xf32>, %dy: tensor<1x512x1600xf32>, %w: tensor<1600xf32>) -> (tensor<1x512x1600xf32>, tensor<1600xf32>, tensor<1600xf32>) attributes {tfm.body = "backward"} {
  %dx, %dw, %db = tfm.layer_norm_grad %x, %dy, %w {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x512x1600xf32>, tensor<1x512x1600xf32>, tensor<1600xf32>) -> (tensor<1x512x1600xf32>, tensor<1600xf32>, tensor<1600xf32>)
  return %dx, %dw, %db : tensor<1x512x1600xf32>, tensor<1600xf32>, tensor<1600xf32>
}
func.func private @layer_norm_grad_16384_bf16(%x: tensor<1x512x16384xbf16>, %dy: tensor<1x512x16384xbf16>, %w: tensor<16384xbf16>) -> (tensor<1x512x16384xbf16>, tensor<16384xf32>, tensor<16384xf32>) attributes {tfm.body = "backward"} {
  %dx, %dw, %db = tfm.layer_norm_grad %x, %dy, %w {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x512x16384xbf16>, tensor<1x512x16384xbf16>, tensor<16384xbf16>) -> (tensor<1x512x16384xbf16>, tensor<16384xf32>, tensor<16384xf32>)
  return %dx, %dw, %db : tensor<1x512x16384xbf16>, tensor<16384xf32>, tensor<16384xf32>
}
func.func private @swiglu_bf16(%x: tensor<1x512x14336xbf16>, %u: tensor<1x512x14336xbf16>) -> (tensor<1x512x14336xbf16>) attributes {tfm.body = "forward"} {
  %0 = tfm.swiglu %x, %u : (tensor<1x512x14336xbf16>, tensor<1x512x14336xbf16>) -> tensor<1x512x14336xbf16>
  return %0 : tensor<1x512x14336xbf16>
}
func.func private @swiglu_grad_bf16(%x: tensor<1x512x14336xbf16>, %u: tensor<1x512x14336xbf16>, %dy: tensor<1x512x14336xbf16>) -> (tensor<1x512x14336xbf16>, tensor<1x512x14336xbf16>) attributes {tfm.body = "backward"} {
  %0, %1 = tfm.swiglu_grad %x, %u, %dy : (tensor<1x512x14336xbf16>, tensor<1x512x14336xbf16>, tensor<1x512x14336xbf16>) -> (tensor<1x512x14336xbf16>, tensor<1x512x14336xbf16>)
  return %0, %1 : tensor<1x512x14336xbf16>, tensor<1x512x14336xbf16>
}
func.func private @gelu_bf16(%x: tensor<1x512x6400xbf16>) -> (tensor<1x512x6400xbf16>) attributes {tfm.body = "forward"} {
  %0 = tfm.gelu %x {kind = 0 : i32} : (tensor<1x512x6400xbf16>) -> tensor<1x512x6400xbf16>
  return %0 : tensor<1x512x6400xbf16>
}
func.func private @gelu_grad_bf16(%x: tensor<1x512x6400xbf16>, %dy: tensor<1x512x6400xbf16>) -> (tensor<1x512x6400xbf16>) attributes {tfm.body = "backward"} {
  %0 = tfm.gelu_grad %x, %dy {kind = 1 : i32} : (tensor<1x512x6400xbf16>, tensor<1x512x6400xbf16>) -> tensor<1x512x6400xbf16>
  return %0 : tensor<1x512x6400xbf16>
}
func.func private @loss_bf16(%x: tensor<1x64x128256xbf16>, %l: tensor<1x64xi64>, %seed: tensor<f32>) -> (tensor<f64>, tensor<1x64x128256xbf16>) attributes {tfm.body = "forward"} {
  %m = tfm.logits_max %x : (tensor<1x64x128256xbf16>) -> tensor<1x64xf32>
  %s, %t = tfm.logits_sum %x, %l, %m : (tensor<1x64x128256xbf16>, tensor<1x64xi64>, tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>)
  %loss = tfm.cross_entropy %l, %m, %s, %t : (tensor<1x64xi64>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<f64>
  %d = tfm.cross_entropy_grad %x, %l, %m, %s, %seed : (tensor<1x64x128256xbf16>, tensor<1x64xi64>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<f32>) -> tensor<1x64x128256xbf16>
  return %loss, %d : tensor<f64>, tensor<1x64x128256xbf16>
}
func.func private @embedding_bf16(%ids: tensor<1x64xi64>, %t: tensor<1024x4096xbf16>, %dy: tensor<1x64x4096xbf16>) -> (tensor<1x64x4096xbf16>, tensor<1024x4096xf32>) attributes {tfm.body = "forward"} {
  %0 = tfm.embedding %ids, %t : (tensor<1x64xi64>, tensor<1024x4096xbf16>) -> tensor<1x64x4096xbf16>
  %1 = tfm.embedding_grad %ids, %dy : (tensor<1x64xi64>, tensor<1x64x4096xbf16>) -> tensor<1024x4096xf32>
  return %0, %1 : tensor<1x64x4096xbf16>, tensor<1024x4096xf32>
}
func.func private @rope_bf16(%x: tensor<1x64x4096xbf16>, %p: tensor<1x64xi64>) -> (tensor<1x64x4096xbf16>) attributes {tfm.body = "forward"} {
  %0 = tfm.rope %x, %p {head_size = 128 : i64, rotary_dim = 128 : i64, theta = 5.0e5 : f64} : (tensor<1x64x4096xbf16>, tensor<1x64xi64>) -> tensor<1x64x4096xbf16>
  return %0 : tensor<1x64x4096xbf16>
}
func.func private @swiglu_f32(%x: tensor<1x512x14336xf32>, %u: tensor<1x512x14336xf32>) -> (tensor<1x512x14336xf32>) attributes {tfm.body = "forward"} {
  %0 = tfm.swiglu %x, %u : (tensor<1x512x14336xf32>, tensor<1x512x14336xf32>) -> tensor<1x512x14336xf32>
  return %0 : tensor<1x512x14336xf32>
}
func.func private @swiglu_grad_f32(%x: tensor<1x512x14336xf32>, %u: tensor<1x512x14336xf32>, %dy: tensor<1x512x14336xf32>) -> (tensor<1x512x14336xf32>, tensor<1x512x14336xf32>) attributes {tfm.body = "backward"} {
  %0, %1 = tfm.swiglu_grad %x, %u, %dy : (tensor<1x512x14336xf32>, tensor<1x512x14336xf32>, tensor<1x512x14336xf32>) -> (tensor<1x512x14336xf32>, tensor<1x512x14336xf32>)
  return %0, %1 : tensor<1x512x14336xf32>, tensor<1x512x14336xf32>
}
func.func private @gelu_f32(%x: tensor<1x512x6400xf32>) -> (tensor<1x512x6400xf32>) attributes {tfm.body = "forward"} {
  %0 = tfm.gelu %x {kind = 0 : i32} : (tensor<1x512x6400xf32>) -> tensor<1x512x6400xf32>
  return %0 : tensor<1x512x6400xf32>
}
func.func private @gelu_grad_f32(%x: tensor<1x512x6400xf32>, %dy: tensor<1x512x6400xf32>) -> (tensor<1x512x6400xf32>) attributes {tfm.body = "backward"} {
  %0 = tfm.gelu_grad %x, %dy {kind = 1 : i32} : (tensor<1x512x6400xf32>, tensor<1x512x6400xf32>) -> tensor<1x512x6400xf32>
  return %0 : tensor<1x512x6400xf32>
}
func.func private @loss_f32(%x: tensor<1x64x128256xf32>, %l: tensor<1x64xi64>, %seed: tensor<f32>) -> (tensor<f64>, tensor<1x64x128256xf32>) attributes {tfm.body = "forward"} {
  %m = tfm.logits_max %x : (tensor<1x64x128256xf32>) -> tensor<1x64xf32>
  %s, %t = tfm.logits_sum %x, %l, %m : (tensor<1x64x128256xf32>, tensor<1x64xi64>, tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>)
  %loss = tfm.cross_entropy %l, %m, %s, %t : (tensor<1x64xi64>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<f64>
  %d = tfm.cross_entropy_grad %x, %l, %m, %s, %seed : (tensor<1x64x128256xf32>, tensor<1x64xi64>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<f32>) -> tensor<1x64x128256xf32>
  return %loss, %d : tensor<f64>, tensor<1x64x128256xf32>
}
func.func private @embedding_f32(%ids: tensor<1x64xi64>, %t: tensor<1024x4096xf32>, %dy: tensor<1x64x4096xf32>) -> (tensor<1x64x4096xf32>, tensor<1024x4096xf32>) attributes {tfm.body = "forward"} {
  %0 = tfm.embedding %ids, %t : (tensor<1x64xi64>, tensor<1024x4096xf32>) -> tensor<1x64x4096xf32>
  %1 = tfm.embedding_grad %ids, %dy : (tensor<1x64xi64>, tensor<1x64x4096xf32>) -> tensor<1024x4096xf32>
  return %0, %1 : tensor<1x64x4096xf32>, tensor<1024x4096xf32>
}
func.func private @rope_f32(%x: tensor<1x64x4096xf32>, %p: tensor<1x64xi64>) -> (tensor<1x64x4096xf32>) attributes {tfm.body = "forward"} {
  %0 = tfm.rope %x, %p {head_size = 128 : i64, rotary_dim = 128 : i64, theta = 5.0e5 : f64} : (tensor<1x64x4096xf32>, tensor<1x64xi64>) -> tensor<1x64x4096xf32>
  return %0 : tensor<1x64x4096xf32>
}
func.func private @adamw(%p: tensor<?xf32>, %m: tensor<?xf32>, %v: tensor<?xf32>, %g: tensor<?xf32>, %h: tensor<8xf32>) -> (tensor<?xf32> {tfm.inplace = 0 : i64}, tensor<?xf32> {tfm.inplace = 1 : i64}, tensor<?xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "update"} {
  %0, %1, %2 = tfm.adamw %p, %m, %v, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
func.func private @cast_parameters(%p: tensor<?xf32>) -> (tensor<?xbf16>) attributes {tfm.body = "update"} {
  %0 = arith.truncf %p : tensor<?xf32> to tensor<?xbf16>
  return %0 : tensor<?xbf16>
}
func.func private @sum_of_squares(%g: tensor<?xf32>) -> (tensor<f64>) attributes {tfm.body = "norm"} {
  %0 = tfm.sum_of_squares %g : (tensor<?xf32>) -> tensor<f64>
  return %0 : tensor<f64>
}
func.func private @attention_64_bf16(%q: tensor<1x512x128xbf16>, %k: tensor<1x512x64xbf16>, %v: tensor<1x512x64xbf16>) -> (tensor<1x512x128xbf16>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x128xbf16>, tensor<1x512x64xbf16>, tensor<1x512x64xbf16>) -> (tensor<1x512x128xbf16>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x128xbf16>, tensor<1x2x512xf32>
}
func.func private @attention_grad_64_bf16(%q: tensor<1x512x128xbf16>, %k: tensor<1x512x64xbf16>, %v: tensor<1x512x64xbf16>, %o: tensor<1x512x128xbf16>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x128xbf16>) -> (tensor<1x512x128xbf16>, tensor<1x512x64xf32>, tensor<1x512x64xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x128xbf16>, tensor<1x512x64xbf16>, tensor<1x512x64xbf16>, tensor<1x512x128xbf16>, tensor<1x2x512xf32>, tensor<1x512x128xbf16>) -> (tensor<1x512x128xbf16>, tensor<1x512x64xf32>, tensor<1x512x64xf32>)
  return %dq, %dk, %dv : tensor<1x512x128xbf16>, tensor<1x512x64xf32>, tensor<1x512x64xf32>
}
func.func private @attention_128_bf16(%q: tensor<1x512x256xbf16>, %k: tensor<1x512x128xbf16>, %v: tensor<1x512x128xbf16>) -> (tensor<1x512x256xbf16>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x256xbf16>, tensor<1x512x128xbf16>, tensor<1x512x128xbf16>) -> (tensor<1x512x256xbf16>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x256xbf16>, tensor<1x2x512xf32>
}
func.func private @attention_grad_128_bf16(%q: tensor<1x512x256xbf16>, %k: tensor<1x512x128xbf16>, %v: tensor<1x512x128xbf16>, %o: tensor<1x512x256xbf16>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x256xbf16>) -> (tensor<1x512x256xbf16>, tensor<1x512x128xf32>, tensor<1x512x128xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x256xbf16>, tensor<1x512x128xbf16>, tensor<1x512x128xbf16>, tensor<1x512x256xbf16>, tensor<1x2x512xf32>, tensor<1x512x256xbf16>) -> (tensor<1x512x256xbf16>, tensor<1x512x128xf32>, tensor<1x512x128xf32>)
  return %dq, %dk, %dv : tensor<1x512x256xbf16>, tensor<1x512x128xf32>, tensor<1x512x128xf32>
}
func.func private @attention_64_f32(%q: tensor<1x512x128xf32>, %k: tensor<1x512x64xf32>, %v: tensor<1x512x64xf32>) -> (tensor<1x512x128xf32>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x128xf32>, tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> (tensor<1x512x128xf32>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x128xf32>, tensor<1x2x512xf32>
}
func.func private @attention_grad_64_f32(%q: tensor<1x512x128xf32>, %k: tensor<1x512x64xf32>, %v: tensor<1x512x64xf32>, %o: tensor<1x512x128xf32>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x128xf32>) -> (tensor<1x512x128xf32>, tensor<1x512x64xf32>, tensor<1x512x64xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x128xf32>, tensor<1x512x64xf32>, tensor<1x512x64xf32>, tensor<1x512x128xf32>, tensor<1x2x512xf32>, tensor<1x512x128xf32>) -> (tensor<1x512x128xf32>, tensor<1x512x64xf32>, tensor<1x512x64xf32>)
  return %dq, %dk, %dv : tensor<1x512x128xf32>, tensor<1x512x64xf32>, tensor<1x512x64xf32>
}
func.func private @attention_128_f32(%q: tensor<1x512x256xf32>, %k: tensor<1x512x128xf32>, %v: tensor<1x512x128xf32>) -> (tensor<1x512x256xf32>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x256xf32>, tensor<1x512x128xf32>, tensor<1x512x128xf32>) -> (tensor<1x512x256xf32>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x256xf32>, tensor<1x2x512xf32>
}
func.func private @attention_grad_128_f32(%q: tensor<1x512x256xf32>, %k: tensor<1x512x128xf32>, %v: tensor<1x512x128xf32>, %o: tensor<1x512x256xf32>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x256xf32>) -> (tensor<1x512x256xf32>, tensor<1x512x128xf32>, tensor<1x512x128xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x256xf32>, tensor<1x512x128xf32>, tensor<1x512x128xf32>, tensor<1x512x256xf32>, tensor<1x2x512xf32>, tensor<1x512x256xf32>) -> (tensor<1x512x256xf32>, tensor<1x512x128xf32>, tensor<1x512x128xf32>)
  return %dq, %dk, %dv : tensor<1x512x256xf32>, tensor<1x512x128xf32>, tensor<1x512x128xf32>
}
func.func private @attention_documents_128_bf16(%q: tensor<1x512x256xbf16>, %k: tensor<1x512x128xbf16>, %v: tensor<1x512x128xbf16>, %m: tensor<1x512xi32>) -> (tensor<1x512x256xbf16>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v documents %m causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x256xbf16>, tensor<1x512x128xbf16>, tensor<1x512x128xbf16>, tensor<1x512xi32>) -> (tensor<1x512x256xbf16>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x256xbf16>, tensor<1x2x512xf32>
}
func.func private @attention_grad_documents_128_bf16(%q: tensor<1x512x256xbf16>, %k: tensor<1x512x128xbf16>, %v: tensor<1x512x128xbf16>, %o: tensor<1x512x256xbf16>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x256xbf16>, %m: tensor<1x512xi32>) -> (tensor<1x512x256xbf16>, tensor<1x512x128xf32>, tensor<1x512x128xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do documents %m causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x256xbf16>, tensor<1x512x128xbf16>, tensor<1x512x128xbf16>, tensor<1x512x256xbf16>, tensor<1x2x512xf32>, tensor<1x512x256xbf16>, tensor<1x512xi32>) -> (tensor<1x512x256xbf16>, tensor<1x512x128xf32>, tensor<1x512x128xf32>)
  return %dq, %dk, %dv : tensor<1x512x256xbf16>, tensor<1x512x128xf32>, tensor<1x512x128xf32>
}
func.func private @attention_256_bf16(%q: tensor<1x512x512xbf16>, %k: tensor<1x512x256xbf16>, %v: tensor<1x512x256xbf16>) -> (tensor<1x512x512xbf16>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x512xbf16>, tensor<1x512x256xbf16>, tensor<1x512x256xbf16>) -> (tensor<1x512x512xbf16>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x512xbf16>, tensor<1x2x512xf32>
}
func.func private @attention_grad_256_bf16(%q: tensor<1x512x512xbf16>, %k: tensor<1x512x256xbf16>, %v: tensor<1x512x256xbf16>, %o: tensor<1x512x512xbf16>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x512xbf16>) -> (tensor<1x512x512xbf16>, tensor<1x512x256xf32>, tensor<1x512x256xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x512xbf16>, tensor<1x512x256xbf16>, tensor<1x512x256xbf16>, tensor<1x512x512xbf16>, tensor<1x2x512xf32>, tensor<1x512x512xbf16>) -> (tensor<1x512x512xbf16>, tensor<1x512x256xf32>, tensor<1x512x256xf32>)
  return %dq, %dk, %dv : tensor<1x512x512xbf16>, tensor<1x512x256xf32>, tensor<1x512x256xf32>
}
func.func private @attention_256_f32(%q: tensor<1x512x512xf32>, %k: tensor<1x512x256xf32>, %v: tensor<1x512x256xf32>) -> (tensor<1x512x512xf32>, tensor<1x2x512xf32>) attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x512xf32>, tensor<1x512x256xf32>, tensor<1x512x256xf32>) -> (tensor<1x512x512xf32>, tensor<1x2x512xf32>)
  return %o, %l : tensor<1x512x512xf32>, tensor<1x2x512xf32>
}
func.func private @attention_grad_256_f32(%q: tensor<1x512x512xf32>, %k: tensor<1x512x256xf32>, %v: tensor<1x512x256xf32>, %o: tensor<1x512x512xf32>, %l: tensor<1x2x512xf32>, %do: tensor<1x512x512xf32>) -> (tensor<1x512x512xf32>, tensor<1x512x256xf32>, tensor<1x512x256xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x512x512xf32>, tensor<1x512x256xf32>, tensor<1x512x256xf32>, tensor<1x512x512xf32>, tensor<1x2x512xf32>, tensor<1x512x512xf32>) -> (tensor<1x512x512xf32>, tensor<1x512x256xf32>, tensor<1x512x256xf32>)
  return %dq, %dk, %dv : tensor<1x512x512xf32>, tensor<1x512x256xf32>, tensor<1x512x256xf32>
}
