// One layer of a small GPT-2 in f32, forward and backward, at odd sizes.
func.func private @forward(%x: tensor<2x9x24xf32>, %m: tensor<2x9xi64>, %n1: tensor<24xf32>, %c1: tensor<24xf32>, %wa: tensor<24x72xf32>, %ba: tensor<72xf32>, %wo: tensor<24x24xf32>, %bo: tensor<24xf32>,
    %n2: tensor<24xf32>, %c2: tensor<24xf32>, %wf: tensor<24x40xf32>, %bf: tensor<40xf32>, %wp: tensor<40x24xf32>, %bp: tensor<24xf32>)
    -> (tensor<2x9x24xf32>, tensor<2x9x72xf32>, tensor<2x9x24xf32>, tensor<2x4x9xf32>, tensor<2x9x24xf32>, tensor<2x9x40xf32>) attributes {tfm.body = "forward"} {
  %h = tfm.layer_norm %x weight %n1 bias %c1 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %l = tfm.linear %h, %wa in_out : (tensor<2x9x24xf32>, tensor<24x72xf32>) -> tensor<2x9x72xf32>
  %p = tfm.bias_add %l, %ba : (tensor<2x9x72xf32>, tensor<72xf32>) -> tensor<2x9x72xf32>
  %q = tfm.slice %p {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x9x72xf32> -> tensor<2x9x24xf32>
  %k = tfm.slice %p {offsets = array<i64: 0, 0, 24>, strides = array<i64: 1, 1, 1>} : tensor<2x9x72xf32> -> tensor<2x9x24xf32>
  %v = tfm.slice %p {offsets = array<i64: 0, 0, 48>, strides = array<i64: 1, 1, 1>} : tensor<2x9x72xf32> -> tensor<2x9x24xf32>
  %o, %lse = tfm.attention %q, %k, %v key_mask %m causal top_left {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0.4082 : f64} : (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9xi64>) -> (tensor<2x9x24xf32>, tensor<2x4x9xf32>)
  %ol = tfm.linear %o, %wo in_out : (tensor<2x9x24xf32>, tensor<24x24xf32>) -> tensor<2x9x24xf32>
  %ob = tfm.bias_add %ol, %bo : (tensor<2x9x24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %r = arith.addf %ob, %x : tensor<2x9x24xf32>
  %h2 = tfm.layer_norm %r weight %n2 bias %c2 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %f = tfm.linear %h2, %wf in_out : (tensor<2x9x24xf32>, tensor<24x40xf32>) -> tensor<2x9x40xf32>
  %fb = tfm.bias_add %f, %bf : (tensor<2x9x40xf32>, tensor<40xf32>) -> tensor<2x9x40xf32>
  %g = tfm.gelu %fb {kind = 1 : i32} : (tensor<2x9x40xf32>) -> tensor<2x9x40xf32>
  %d = tfm.linear %g, %wp in_out : (tensor<2x9x40xf32>, tensor<40x24xf32>) -> tensor<2x9x24xf32>
  %db = tfm.bias_add %d, %bp : (tensor<2x9x24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %y = arith.addf %r, %db : tensor<2x9x24xf32>
  return %y, %p, %o, %lse, %r, %fb : tensor<2x9x24xf32>, tensor<2x9x72xf32>, tensor<2x9x24xf32>, tensor<2x4x9xf32>, tensor<2x9x24xf32>, tensor<2x9x40xf32>
}
func.func private @backward(%dy: tensor<2x9x24xf32>, %x: tensor<2x9x24xf32>, %m: tensor<2x9xi64>, %p: tensor<2x9x72xf32>, %o: tensor<2x9x24xf32>, %lse: tensor<2x4x9xf32> {test.positive}, %r: tensor<2x9x24xf32>, %fb: tensor<2x9x40xf32>, %n1: tensor<24xf32>, %c1: tensor<24xf32>, %wa: tensor<24x72xf32>, %wo: tensor<24x24xf32>, %n2: tensor<24xf32>, %c2: tensor<24xf32>, %wf: tensor<24x40xf32>, %wp: tensor<40x24xf32>,
    %an1: tensor<24xf32>, %ac1: tensor<24xf32>, %awa: tensor<24x72xf32>, %aba: tensor<72xf32>, %awo: tensor<24x24xf32>, %abo: tensor<24xf32>, %an2: tensor<24xf32>, %ac2: tensor<24xf32>, %awf: tensor<24x40xf32>, %abf: tensor<40xf32>, %awp: tensor<40x24xf32>, %abp: tensor<24xf32>)
    -> (tensor<2x9x24xf32>, tensor<24xf32> {tfm.inplace = 16 : i64}, tensor<24xf32> {tfm.inplace = 17 : i64}, tensor<24x72xf32> {tfm.inplace = 18 : i64}, tensor<72xf32> {tfm.inplace = 19 : i64}, tensor<24x24xf32> {tfm.inplace = 20 : i64}, tensor<24xf32> {tfm.inplace = 21 : i64}, tensor<24xf32> {tfm.inplace = 22 : i64}, tensor<24xf32> {tfm.inplace = 23 : i64}, tensor<24x40xf32> {tfm.inplace = 24 : i64}, tensor<40xf32> {tfm.inplace = 25 : i64}, tensor<40x24xf32> {tfm.inplace = 26 : i64}, tensor<24xf32> {tfm.inplace = 27 : i64})
    attributes {tfm.body = "backward"} {
  %h = tfm.layer_norm %x weight %n1 bias %c1 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %h2 = tfm.layer_norm %r weight %n2 bias %c2 {eps = 1.0e-5 : f64} : (tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<2x9x24xf32>
  %g = tfm.gelu %fb {kind = 1 : i32} : (tensor<2x9x40xf32>) -> tensor<2x9x40xf32>
  %dbp = tfm.column_sum %dy : (tensor<2x9x24xf32>) -> tensor<24xf32>
  %dbpa = tfm.accumulate %abp, %dbp : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dg = tfm.linear %dy, %wp : (tensor<2x9x24xf32>, tensor<40x24xf32>) -> tensor<2x9x40xf32>
  %dwp = tfm.linear_weight_grad %g, %dy in_out : (tensor<2x9x40xf32>, tensor<2x9x24xf32>) -> tensor<40x24xf32>
  %dwpa = tfm.accumulate %awp, %dwp : (tensor<40x24xf32>, tensor<40x24xf32>) -> tensor<40x24xf32>
  %df = tfm.gelu_grad %fb, %dg {kind = 1 : i32} : (tensor<2x9x40xf32>, tensor<2x9x40xf32>) -> tensor<2x9x40xf32>
  %dh2 = tfm.linear %df, %wf : (tensor<2x9x40xf32>, tensor<24x40xf32>) -> tensor<2x9x24xf32>
  %dwf = tfm.linear_weight_grad %h2, %df in_out : (tensor<2x9x24xf32>, tensor<2x9x40xf32>) -> tensor<24x40xf32>
  %dwfa = tfm.accumulate %awf, %dwf : (tensor<24x40xf32>, tensor<24x40xf32>) -> tensor<24x40xf32>
  %dbf = tfm.column_sum %df : (tensor<2x9x40xf32>) -> tensor<40xf32>
  %dbfa = tfm.accumulate %abf, %dbf : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %dl2, %dn2, %dc2 = tfm.layer_norm_grad %r, %dh2, %n2 {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<24xf32>) -> (tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>)
  %dn2a = tfm.accumulate %an2, %dn2 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dc2a = tfm.accumulate %ac2, %dc2 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dr = arith.addf %dy, %dl2 : tensor<2x9x24xf32>
  %dbo = tfm.column_sum %dr : (tensor<2x9x24xf32>) -> tensor<24xf32>
  %dboa = tfm.accumulate %abo, %dbo : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %do = tfm.linear %dr, %wo : (tensor<2x9x24xf32>, tensor<24x24xf32>) -> tensor<2x9x24xf32>
  %dwo = tfm.linear_weight_grad %o, %dr in_out : (tensor<2x9x24xf32>, tensor<2x9x24xf32>) -> tensor<24x24xf32>
  %dwoa = tfm.accumulate %awo, %dwo : (tensor<24x24xf32>, tensor<24x24xf32>) -> tensor<24x24xf32>
  %q = tfm.slice %p {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x9x72xf32> -> tensor<2x9x24xf32>
  %k = tfm.slice %p {offsets = array<i64: 0, 0, 24>, strides = array<i64: 1, 1, 1>} : tensor<2x9x72xf32> -> tensor<2x9x24xf32>
  %v = tfm.slice %p {offsets = array<i64: 0, 0, 48>, strides = array<i64: 1, 1, 1>} : tensor<2x9x72xf32> -> tensor<2x9x24xf32>
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %lse, %do key_mask %m causal top_left {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0.4082 : f64} : (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x4x9xf32>, tensor<2x9x24xf32>, tensor<2x9xi64>) -> (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<2x9x24xf32>)
  %pq = tfm.pad %dq {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x9x24xf32> -> tensor<2x9x72xf32>
  %pk = tfm.pad %dk {offsets = array<i64: 0, 0, 24>, strides = array<i64: 1, 1, 1>} : tensor<2x9x24xf32> -> tensor<2x9x72xf32>
  %pv = tfm.pad %dv {offsets = array<i64: 0, 0, 48>, strides = array<i64: 1, 1, 1>} : tensor<2x9x24xf32> -> tensor<2x9x72xf32>
  %p1 = arith.addf %pq, %pk : tensor<2x9x72xf32>
  %dp = arith.addf %p1, %pv : tensor<2x9x72xf32>
  %dba = tfm.column_sum %dp : (tensor<2x9x72xf32>) -> tensor<72xf32>
  %dbaa = tfm.accumulate %aba, %dba : (tensor<72xf32>, tensor<72xf32>) -> tensor<72xf32>
  %dh = tfm.linear %dp, %wa : (tensor<2x9x72xf32>, tensor<24x72xf32>) -> tensor<2x9x24xf32>
  %dwa = tfm.linear_weight_grad %h, %dp in_out : (tensor<2x9x24xf32>, tensor<2x9x72xf32>) -> tensor<24x72xf32>
  %dwaa = tfm.accumulate %awa, %dwa : (tensor<24x72xf32>, tensor<24x72xf32>) -> tensor<24x72xf32>
  %dl1, %dn1, %dc1 = tfm.layer_norm_grad %x, %dh, %n1 {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x9x24xf32>, tensor<2x9x24xf32>, tensor<24xf32>) -> (tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>)
  %dn1a = tfm.accumulate %an1, %dn1 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dc1a = tfm.accumulate %ac1, %dc1 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %dx = arith.addf %dr, %dl1 : tensor<2x9x24xf32>
  return %dx, %dn1a, %dc1a, %dwaa, %dbaa, %dwoa, %dboa, %dn2a, %dc2a, %dwfa, %dbfa, %dwpa, %dbpa : tensor<2x9x24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24x72xf32>, tensor<72xf32>, tensor<24x24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24x40xf32>, tensor<40xf32>, tensor<40x24xf32>, tensor<24xf32>
}
