// One layer of a small Llama in f32, forward and backward, at odd sizes.
func.func private @forward(%x: tensor<2x9x24xf32>, %pos: tensor<1x9xi64> {test.range = array<i64: 0, 50>}, %n1: tensor<24xf32>, %wq: tensor<24x24xf32>, %wk: tensor<12x24xf32>, %wv: tensor<12x24xf32>,
    %wo: tensor<24x24xf32>, %n2: tensor<24xf32>, %wg: tensor<40x24xf32>, %wu: tensor<40x24xf32>, %wd: tensor<24x40xf32>)
    -> (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9x12xf32>, tensor<2x9x12xf32>, tensor<2x9x24xf32>, tensor<2x4x9xf32>, tensor<2x9x24xf32>, tensor<2x9x40xf32>, tensor<2x9x40xf32>)
    attributes {tfm.body = "forward"} {
  %h = tfm.rms_norm %x, %n1 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %q = tfm.linear %h, %wq : (tensor<2x9x24xf32>, tensor<24x24xf32>) -> tensor<2x9x24xf32>
  %k = tfm.linear %h, %wk : (tensor<2x9x24xf32>, tensor<12x24xf32>) -> tensor<2x9x12xf32>
  %v = tfm.linear %h, %wv : (tensor<2x9x24xf32>, tensor<12x24xf32>) -> tensor<2x9x12xf32>
  %qr = tfm.rope %q, %pos {head_size = 6 : i64, rotary_dim = 6 : i64, theta = 1.0e4 : f64} : (tensor<2x9x24xf32>, tensor<1x9xi64>) -> tensor<2x9x24xf32>
  %kr = tfm.rope %k, %pos {head_size = 6 : i64, rotary_dim = 6 : i64, theta = 1.0e4 : f64} : (tensor<2x9x12xf32>, tensor<1x9xi64>) -> tensor<2x9x12xf32>
  %o, %lse = tfm.attention %qr, %kr, %v causal top_left {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.4082 : f64} : (tensor<2x9x24xf32>, tensor<2x9x12xf32>, tensor<2x9x12xf32>) -> (tensor<2x9x24xf32>, tensor<2x4x9xf32>)
  %p = tfm.linear %o, %wo : (tensor<2x9x24xf32>, tensor<24x24xf32>) -> tensor<2x9x24xf32>
  %r = arith.addf %x, %p : tensor<2x9x24xf32>
  %h2 = tfm.rms_norm %r, %n2 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %g = tfm.linear %h2, %wg : (tensor<2x9x24xf32>, tensor<40x24xf32>) -> tensor<2x9x40xf32>
  %u = tfm.linear %h2, %wu : (tensor<2x9x24xf32>, tensor<40x24xf32>) -> tensor<2x9x40xf32>
  %s = tfm.swiglu %g, %u : (tensor<2x9x40xf32>, tensor<2x9x40xf32>) -> tensor<2x9x40xf32>
  %d = tfm.linear %s, %wd : (tensor<2x9x40xf32>, tensor<24x40xf32>) -> tensor<2x9x24xf32>
  %y = arith.addf %r, %d : tensor<2x9x24xf32>
  return %y, %qr, %kr, %v, %o, %lse, %r, %g, %u : tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9x12xf32>, tensor<2x9x12xf32>, tensor<2x9x24xf32>, tensor<2x4x9xf32>, tensor<2x9x24xf32>, tensor<2x9x40xf32>, tensor<2x9x40xf32>
}
func.func private @backward(%dy: tensor<2x9x24xf32>, %x: tensor<2x9x24xf32>, %pos: tensor<1x9xi64> {test.range = array<i64: 0, 50>}, %qr: tensor<2x9x24xf32>, %kr: tensor<2x9x12xf32>, %v: tensor<2x9x12xf32>, %o: tensor<2x9x24xf32>, %lse: tensor<2x4x9xf32> {test.positive}, %r: tensor<2x9x24xf32>, %g: tensor<2x9x40xf32>, %u: tensor<2x9x40xf32>, %n1: tensor<24xf32>, %wq: tensor<24x24xf32>, %wk: tensor<12x24xf32>, %wv: tensor<12x24xf32>,
    %wo: tensor<24x24xf32>, %n2: tensor<24xf32>, %wg: tensor<40x24xf32>, %wu: tensor<40x24xf32>, %wd: tensor<24x40xf32>,
    %an1: tensor<24xf32>, %awq: tensor<24x24xf32>, %awk: tensor<12x24xf32>, %awv: tensor<12x24xf32>, %awo: tensor<24x24xf32>, %an2: tensor<24xf32>, %awg: tensor<40x24xf32>, %awu: tensor<40x24xf32>, %awd: tensor<24x40xf32>)
    -> (tensor<2x9x24xf32>, tensor<24xf32> {tfm.inplace = 20 : i64}, tensor<24x24xf32> {tfm.inplace = 21 : i64}, tensor<12x24xf32> {tfm.inplace = 22 : i64}, tensor<12x24xf32> {tfm.inplace = 23 : i64}, tensor<24x24xf32> {tfm.inplace = 24 : i64}, tensor<24xf32> {tfm.inplace = 25 : i64}, tensor<40x24xf32> {tfm.inplace = 26 : i64}, tensor<40x24xf32> {tfm.inplace = 27 : i64}, tensor<24x40xf32> {tfm.inplace = 28 : i64})
    attributes {tfm.body = "backward"} {
  %h = tfm.rms_norm %x, %n1 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %h2 = tfm.rms_norm %r, %n2 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %s = tfm.swiglu %g, %u : (tensor<2x9x40xf32>, tensor<2x9x40xf32>) -> tensor<2x9x40xf32>
  %ds = tfm.linear %dy, %wd in_out : (tensor<2x9x24xf32>, tensor<24x40xf32>) -> tensor<2x9x40xf32>
  %dwd = tfm.linear_weight_grad %s, %dy : (tensor<2x9x40xf32>, tensor<2x9x24xf32>) -> tensor<24x40xf32>
  %dwda = tfm.accumulate %awd, %dwd : (tensor<24x40xf32>, tensor<24x40xf32>) -> tensor<24x40xf32>
  %dg, %du = tfm.swiglu_grad %g, %u, %ds : (tensor<2x9x40xf32>, tensor<2x9x40xf32>, tensor<2x9x40xf32>) -> (tensor<2x9x40xf32>, tensor<2x9x40xf32>)
  %dwg = tfm.linear_weight_grad %h2, %dg : (tensor<2x9x24xf32>, tensor<2x9x40xf32>) -> tensor<40x24xf32>
  %dwga = tfm.accumulate %awg, %dwg : (tensor<40x24xf32>, tensor<40x24xf32>) -> tensor<40x24xf32>
  %dwu = tfm.linear_weight_grad %h2, %du : (tensor<2x9x24xf32>, tensor<2x9x40xf32>) -> tensor<40x24xf32>
  %dwua = tfm.accumulate %awu, %dwu : (tensor<40x24xf32>, tensor<40x24xf32>) -> tensor<40x24xf32>
  %d1 = tfm.linear %dg, %wg in_out : (tensor<2x9x40xf32>, tensor<40x24xf32>) -> tensor<2x9x24xf32>
  %d2 = tfm.linear %du, %wu in_out : (tensor<2x9x40xf32>, tensor<40x24xf32>) -> tensor<2x9x24xf32>
  %dh2s0 = arith.addf %d1, %d2 : tensor<2x9x24xf32>
  %dh2 = tfm.reshape %dh2s0 : tensor<2x9x24xf32> -> tensor<2x9x24xf32>
  %drn, %dn2 = tfm.rms_norm_grad %r, %dh2, %n2 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<24xf32>) -> (tensor<2x9x24xf32>, tensor<24xf32>)
  %dn2a = tfm.accumulate %an2, %dn2 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dr = arith.addf %dy, %drn : tensor<2x9x24xf32>
  %dwo = tfm.linear_weight_grad %o, %dr : (tensor<2x9x24xf32>, tensor<2x9x24xf32>) -> tensor<24x24xf32>
  %dwoa = tfm.accumulate %awo, %dwo : (tensor<24x24xf32>, tensor<24x24xf32>) -> tensor<24x24xf32>
  %do = tfm.linear %dr, %wo in_out : (tensor<2x9x24xf32>, tensor<24x24xf32>) -> tensor<2x9x24xf32>
  %dqr, %dkr, %dv = tfm.attention_grad %qr, %kr, %v, %o, %lse, %do causal top_left {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.4082 : f64} : (tensor<2x9x24xf32>, tensor<2x9x12xf32>, tensor<2x9x12xf32>, tensor<2x9x24xf32>, tensor<2x4x9xf32>, tensor<2x9x24xf32>) -> (tensor<2x9x24xf32>, tensor<2x9x12xf32>, tensor<2x9x12xf32>)
  %dq = tfm.rope %dqr, %pos {head_size = 6 : i64, rotary_dim = 6 : i64, theta = 1.0e4 : f64, inverse} : (tensor<2x9x24xf32>, tensor<1x9xi64>) -> tensor<2x9x24xf32>
  %dk = tfm.rope %dkr, %pos {head_size = 6 : i64, rotary_dim = 6 : i64, theta = 1.0e4 : f64, inverse} : (tensor<2x9x12xf32>, tensor<1x9xi64>) -> tensor<2x9x12xf32>
  %dwq = tfm.linear_weight_grad %h, %dq : (tensor<2x9x24xf32>, tensor<2x9x24xf32>) -> tensor<24x24xf32>
  %dwqa = tfm.accumulate %awq, %dwq : (tensor<24x24xf32>, tensor<24x24xf32>) -> tensor<24x24xf32>
  %dwk = tfm.linear_weight_grad %h, %dk : (tensor<2x9x24xf32>, tensor<2x9x12xf32>) -> tensor<12x24xf32>
  %dwka = tfm.accumulate %awk, %dwk : (tensor<12x24xf32>, tensor<12x24xf32>) -> tensor<12x24xf32>
  %dwv = tfm.linear_weight_grad %h, %dv : (tensor<2x9x24xf32>, tensor<2x9x12xf32>) -> tensor<12x24xf32>
  %dwva = tfm.accumulate %awv, %dwv : (tensor<12x24xf32>, tensor<12x24xf32>) -> tensor<12x24xf32>
  %e1 = tfm.linear %dq, %wq in_out : (tensor<2x9x24xf32>, tensor<24x24xf32>) -> tensor<2x9x24xf32>
  %e2 = tfm.linear %dk, %wk in_out : (tensor<2x9x12xf32>, tensor<12x24xf32>) -> tensor<2x9x24xf32>
  %e3 = tfm.linear %dv, %wv in_out : (tensor<2x9x12xf32>, tensor<12x24xf32>) -> tensor<2x9x24xf32>
  %dhs0 = arith.addf %e1, %e2 : tensor<2x9x24xf32>
  %dhs1 = arith.addf %dhs0, %e3 : tensor<2x9x24xf32>
  %dh = tfm.reshape %dhs1 : tensor<2x9x24xf32> -> tensor<2x9x24xf32>
  %dxn, %dn1 = tfm.rms_norm_grad %x, %dh, %n1 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<24xf32>) -> (tensor<2x9x24xf32>, tensor<24xf32>)
  %dn1a = tfm.accumulate %an1, %dn1 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dx = arith.addf %dr, %dxn : tensor<2x9x24xf32>
  return %dx, %dn1a, %dwqa, %dwka, %dwva, %dwoa, %dn2a, %dwga, %dwua, %dwda : tensor<2x9x24xf32>, tensor<24xf32>, tensor<24x24xf32>, tensor<12x24xf32>, tensor<12x24xf32>, tensor<24x24xf32>, tensor<24xf32>, tensor<40x24xf32>, tensor<40x24xf32>, tensor<24x40xf32>
}
