// RUN: %drover-opt %s -split-input-file -verify-diagnostics --tfm-verify-distributions

// A linear that is sharded on the contraction is partial until somebody sums.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @lost_reduction(%x: tensor<1x4x2xf32, #tfm.dist<tp = S2>>, %w: tensor<4x2xf32, #tfm.dist<tp = S1>>) -> tensor<1x4x4xf32> {
  // expected-error@+1 {{'tfm.linear' op has result 0 on R, accepted is tp=P sum f32}}
  %y = tfm.linear %x, %w : (tensor<1x4x2xf32, #tfm.dist<tp = S2>>, tensor<4x2xf32, #tfm.dist<tp = S1>>) -> tensor<1x4x4xf32>
  return %y : tensor<1x4x4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @partial_and_replicated(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>, %b: tensor<4xf32>) -> tensor<4x4xf32, #tfm.dist<tp = P sum f32>> {
  // expected-error@+3 {{'tfm.bias_add' op operand 0 is P sum f32 over tp, and the op is not linear in it}}
  // expected-note@+2 {{operand 0 is tp=P sum f32}}
  // expected-note@+1 {{operand 1 is R}}
  %y = tfm.bias_add %x, %b : (tensor<4x4xf32, #tfm.dist<tp = P sum f32>>, tensor<4xf32>) -> tensor<4x4xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<4x4xf32, #tfm.dist<tp = P sum f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @rounding(%x: tensor<4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4xbf16, #tfm.dist<tp = P sum f32>> {
  // expected-error@+2 {{'arith.truncf' op rounds to bf16 what is still to be reduced in f32 over tp}}
  // expected-note@+1 {{operand 0 is tp=P sum f32}}
  %y = arith.truncf %x : tensor<4xf32, #tfm.dist<tp = P sum f32>> to tensor<4xbf16, #tfm.dist<tp = P sum f32>>
  return %y : tensor<4xbf16, #tfm.dist<tp = P sum f32>>
}
// The type of the reduction itself is no rounding of the sum.
func.func @cast(%x: tensor<4xf32, #tfm.dist<tp = P sum bf16>>) -> tensor<4xbf16, #tfm.dist<tp = P sum bf16>> {
  %y = arith.truncf %x : tensor<4xf32, #tfm.dist<tp = P sum bf16>> to tensor<4xbf16, #tfm.dist<tp = P sum bf16>>
  return %y : tensor<4xbf16, #tfm.dist<tp = P sum bf16>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @norm_of_a_part(%x: tensor<1x4x4xf32, #tfm.dist<tp = S2>>) -> tensor<1x4x4xf32, #tfm.dist<tp = S2>> {
  // expected-error@+2 {{'tfm.rms_norm' op the normalized dimension must be whole, but is sharded over tp}}
  // expected-note@+1 {{operand 0 is tp=S2}}
  %y = tfm.rms_norm %x {eps = 1.0e-5 : f64} : (tensor<1x4x4xf32, #tfm.dist<tp = S2>>) -> tensor<1x4x4xf32, #tfm.dist<tp = S2>>
  return %y : tensor<1x4x4xf32, #tfm.dist<tp = S2>>
}
}

// -----

// Zeros of padding would count in the mean.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @norm_over_padding(%x: tensor<1x4x4xf32, #tfm.dist<layout = {2 : [3, 1, 1, 4]}>>) -> tensor<1x4x4xf32, #tfm.dist<layout = {2 : [3, 1, 1, 4]}>> {
  // expected-error@+2 {{'tfm.rms_norm' op the normalized dimension must be whole, but is padded: [[3, 1, 1, 4]]}}
  // expected-note@+1 {{operand 0 is layout of 2 [[3, 1, 1, 4]]}}
  %y = tfm.rms_norm %x {eps = 1.0e-5 : f64} : (tensor<1x4x4xf32, #tfm.dist<layout = {2 : [3, 1, 1, 4]}>>) -> tensor<1x4x4xf32, #tfm.dist<layout = {2 : [3, 1, 1, 4]}>>
  return %y : tensor<1x4x4xf32, #tfm.dist<layout = {2 : [3, 1, 1, 4]}>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @rows_of_a_table(%i: tensor<1x4xi64>, %t: tensor<8x4xf32, #tfm.dist<tp = S0>>) -> tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>> {
  // expected-error@+3 {{'tfm.embedding' op rows sharded over tp need an offset}}
  // expected-note@+2 {{operand 0 is R}}
  // expected-note@+1 {{operand 1 is tp=S0}}
  %y = tfm.embedding %i, %t : (tensor<1x4xi64>, tensor<8x4xf32, #tfm.dist<tp = S0>>) -> tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x2x1)
func.func @other_axis(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4x4xf32, #tfm.dist<tp = P sum f32>> {
  // expected-error@+2 {{'shard.all_reduce' op reduces by sum over cp, on which the operand is R}}
  // expected-note@+1 {{operand 0 is tp=P sum f32}}
  %y = shard.all_reduce %x on @grid grid_axes = [1] {tfm.reduction = 0 : i64} : tensor<4x4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4x4xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<4x4xf32, #tfm.dist<tp = P sum f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x2x1)
func.func @other_type(%x: tensor<4x4xbf16, #tfm.dist<cp = P sum f32>>) -> tensor<4x4xbf16> {
  // expected-error@+2 {{'shard.all_reduce' op has to reduce over cp in f32}}
  // expected-note@+1 {{operand 0 is cp=P sum f32}}
  %y = shard.all_reduce %x on @grid grid_axes = [1] {tfm.reduction = 0 : i64} : tensor<4x4xbf16, #tfm.dist<cp = P sum f32>> -> tensor<4x4xbf16>
  return %y : tensor<4x4xbf16>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x2x1)
func.func @not_the_inner_end(%x: tensor<1x4x4xf32, #tfm.dist<tp = S1, cp = S1x2>>) -> tensor<1x8x4xf32, #tfm.dist<tp = S1>> {
  // expected-error@+2 {{'shard.all_gather' op gathers cp on dimension 1, which is on cp, tp}}
  // expected-note@+1 {{operand 0 is tp=S1, cp=S1x2}}
  %y = shard.all_gather %x on @grid grid_axes = [1] gather_axis = 1 {tfm.two_chunk} : tensor<1x4x4xf32, #tfm.dist<tp = S1, cp = S1x2>> -> tensor<1x8x4xf32, #tfm.dist<tp = S1>>
  return %y : tensor<1x8x4xf32, #tfm.dist<tp = S1>>
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 1x2x1)
func.func @concatenated(%x: tensor<1x4x4xf32, #tfm.dist<cp = S1x2>>) -> tensor<1x8x4xf32> {
  // expected-error@+2 {{'shard.all_gather' op expects 'tfm.two_chunk' exactly where cp is in two chunks}}
  // expected-note@+1 {{operand 0 is cp=S1x2}}
  %y = shard.all_gather %x on @grid grid_axes = [1] gather_axis = 1 : tensor<1x4x4xf32, #tfm.dist<cp = S1x2>> -> tensor<1x8x4xf32>
  return %y : tensor<1x8x4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
func.func @interleaved(%x: tensor<4x4xf32, #tfm.dist<tp = S1, layout = {1 : [4, 1, 1, 4], [4, 1, 1, 4]}>>) -> tensor<4x8xf32> {
  // expected-error@+2 {{'shard.all_gather' op gathers dimension 1, whose segments [[4, 1, 1, 4], [4, 1, 1, 4]] would be interleaved}}
  // expected-note@+1 {{operand 0 is tp=S1, layout of 1 [[4, 1, 1, 4], [4, 1, 1, 4]]}}
  %y = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 1 : tensor<4x4xf32, #tfm.dist<tp = S1, layout = {1 : [4, 1, 1, 4], [4, 1, 1, 4]}>> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
func.func @twice(%x: tensor<4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4xf32> {
  // expected-note@+1 {{the first is here}}
  %y = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 7 : i64} : tensor<4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4xf32>
  // expected-error@+1 {{'shard.all_reduce' op discharges reduction 7 a second time}}
  %z = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 7 : i64} : tensor<4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4xf32>
  return %z : tensor<4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
func.func @without_id(%x: tensor<4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4xf32> {
  // expected-error@+2 {{'shard.all_reduce' op expects 'tfm.reduction', the id of the reduction}}
  // expected-note@+1 {{operand 0 is tp=P sum f32}}
  %y = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
func.func @causal_rows(%q: tensor<1x4x4xf32, #tfm.dist<cp = S1x2>>, %k: tensor<1x8x4xf32>) -> tensor<1x4x4xf32, #tfm.dist<cp = S1x2>> {
  // expected-error@+4 {{'tfm.attention' op rows sharded over cp need the operand query_index}}
  // expected-note@+3 {{operand 0 is cp=S1x2}}
  // expected-note@+2 {{operand 1 is R}}
  // expected-note@+1 {{operand 2 is R}}
  %o, %l = tfm.attention %q, %k, %k causal top_left {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x4xf32, #tfm.dist<cp = S1x2>>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> (tensor<1x4x4xf32, #tfm.dist<cp = S1x2>>, tensor<1x1x4xf32, #tfm.dist<cp = S2x2>>)
  return %o : tensor<1x4x4xf32, #tfm.dist<cp = S1x2>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
func.func @keys(%q: tensor<1x4x4xf32>, %k: tensor<1x2x4xf32, #tfm.dist<cp = S1x2>>) -> tensor<1x4x4xf32> {
  // expected-error@+4 {{'tfm.attention' op the keys' sequence must be whole, but is sharded over cp}}
  // expected-note@+3 {{operand 0 is R}}
  // expected-note@+2 {{operand 1 is cp=S1x2}}
  // expected-note@+1 {{operand 2 is cp=S1x2}}
  %o, %l = tfm.attention %q, %k, %k {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x4xf32>, tensor<1x2x4xf32, #tfm.dist<cp = S1x2>>, tensor<1x2x4xf32, #tfm.dist<cp = S1x2>>) -> (tensor<1x4x4xf32>, tensor<1x1x4xf32>)
  return %o : tensor<1x4x4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @no_rule(%x: tensor<4xf32, #tfm.dist<tp = S0>>) -> tensor<f32> {
  %i = arith.constant 0 : index
  // expected-error@+3 {{'tensor.extract' op has no rule, so that operand 0 must be replicated, not tp=S0}}
  // expected-note@+2 {{operand 0 is tp=S0}}
  // expected-note@+1 {{operand 1 is R}}
  %e = tensor.extract %x[%i] : tensor<4xf32, #tfm.dist<tp = S0>>
  %r = tensor.from_elements %e : tensor<f32>
  return %r : tensor<f32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @no_axis() {
  // expected-error@+1 {{'tfm.fill' op has a result on cp, which is no axis of the grid}}
  %x = tfm.fill {value = 0.0 : f32} : tensor<4xf32, #tfm.dist<cp = S0x2>>
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has argument 0 on tp=P sum f32, accepted are sharded and replicated}}
func.func @microbatch(%w: tensor<4xf32, #tfm.dist<tp = P sum f32>> {tfm.parameter = "w"}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has the accumulator of 'w' on tp=P sum f32, which is cut otherwise than the parameter on tp=S0}}
func.func @microbatch(%w: tensor<4xf32, #tfm.dist<tp = S0>> {tfm.parameter = "w", tfm.global_shape = array<i64: 8>}, %a: tensor<4xf32, #tfm.dist<tp = P sum f32>> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func private @body(%x: tensor<4x2xf32, #tfm.dist<tp = S1>>, %w: tensor<3x2xf32, #tfm.dist<tp = S1>>) -> tensor<4x3xf32, #tfm.dist<tp = P sum f32>> {
  %y = tfm.linear %x, %w : (tensor<4x2xf32, #tfm.dist<tp = S1>>, tensor<3x2xf32, #tfm.dist<tp = S1>>) -> tensor<4x3xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<4x3xf32, #tfm.dist<tp = P sum f32>>
}
// expected-error@+1 {{has output 0 on tp=P sum f32, which nothing reduces}}
func.func @microbatch(%x: tensor<4x2xf32, #tfm.dist<tp = S1>> {tfm.input = "x"}, %w: tensor<3x2xf32, #tfm.dist<tp = S1>> {tfm.parameter = "w", tfm.global_shape = array<i64: 3, 4>}) -> (tensor<4x3xf32, #tfm.dist<tp = P sum f32>> {tfm.output = "y"}) attributes {tfm.microbatch} {
  %y = call @body(%x, %w) : (tensor<4x2xf32, #tfm.dist<tp = S1>>, tensor<3x2xf32, #tfm.dist<tp = S1>>) -> tensor<4x3xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<4x3xf32, #tfm.dist<tp = P sum f32>>
}
}

// -----

// A ring's rule is that of its two parts, one after the other.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @ring_of_a_whole_input(%x: tensor<1x2x8xf32>, %w: tensor<4x8xf32, #tfm.dist<tp = S0>>) -> tensor<1x4x4xf32, #tfm.dist<tp = S2>> {
  // expected-error@+3 {{'tfm.gather_linear' op gathers tp on dimension 1, which is on no axis}}
  // expected-note@+2 {{operand 0 is R}}
  // expected-note@+1 {{operand 1 is tp=S0}}
  %y = tfm.gather_linear %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>} : (tensor<1x2x8xf32>, tensor<4x8xf32, #tfm.dist<tp = S0>>) -> tensor<1x4x4xf32, #tfm.dist<tp = S2>>
  return %y : tensor<1x4x4xf32, #tfm.dist<tp = S2>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @ring_of_a_whole_sum(%x: tensor<1x4x8xf32>, %w: tensor<4x8xf32>) -> tensor<1x2x4xf32, #tfm.dist<tp = S1>> {
  // expected-error@+3 {{'tfm.linear_scatter' op reduces by sum over tp, on which the operand is R}}
  // expected-note@+2 {{operand 0 is R}}
  // expected-note@+1 {{operand 1 is R}}
  %y = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>, tfm.reduction = 0 : i64} : (tensor<1x4x8xf32>, tensor<4x8xf32>) -> tensor<1x2x4xf32, #tfm.dist<tp = S1>>
  return %y : tensor<1x2x4xf32, #tfm.dist<tp = S1>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @ring_without_an_id(%x: tensor<1x4x2xf32, #tfm.dist<tp = S2>>, %w: tensor<4x2xf32, #tfm.dist<tp = S1>>) -> tensor<1x2x4xf32, #tfm.dist<tp = S1>> {
  // expected-error@+3 {{'tfm.linear_scatter' op expects 'tfm.reduction', the id of the reduction}}
  // expected-note@+2 {{operand 0 is tp=S2}}
  // expected-note@+1 {{operand 1 is tp=S1}}
  %y = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>} : (tensor<1x4x2xf32, #tfm.dist<tp = S2>>, tensor<4x2xf32, #tfm.dist<tp = S1>>) -> tensor<1x2x4xf32, #tfm.dist<tp = S1>>
  return %y : tensor<1x2x4xf32, #tfm.dist<tp = S1>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @ring_adds_unlike_sums(%x: tensor<1x4x2xf32, #tfm.dist<tp = S2>>, %w: tensor<4x2xf32, #tfm.dist<tp = S1>>, %z: tensor<1x4x2xf32>, %v: tensor<4x2xf32>) -> tensor<1x2x4xf32, #tfm.dist<tp = S1>> {
  // expected-error@+5 {{'tfm.linear_scatter' op adds tp=P sum f32 and R}}
  // expected-note@+4 {{operand 0 is tp=S2}}
  // expected-note@+3 {{operand 1 is R}}
  // expected-note@+2 {{operand 2 is tp=S1}}
  // expected-note@+1 {{operand 3 is R}}
  %y = tfm.linear_scatter %x, %z, %w, %v {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false, false>, tfm.reduction = 0 : i64} : (tensor<1x4x2xf32, #tfm.dist<tp = S2>>, tensor<1x4x2xf32>, tensor<4x2xf32, #tfm.dist<tp = S1>>, tensor<4x2xf32>) -> tensor<1x2x4xf32, #tfm.dist<tp = S1>>
  return %y : tensor<1x2x4xf32, #tfm.dist<tp = S1>>
}
}

// -----

// What is whole on each rank of cp would be counted once a rank by the reduction of the step.
module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has the accumulator of 'w' on R, expected P sum f32 over cp}}
func.func @microbatch(%w: tensor<4xf32> {tfm.parameter = "w"}, %a: tensor<4xf32> {tfm.accumulator = "w"})
    -> (tensor<4xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return %a : tensor<4xf32>
}
}

// -----

// Nothing says what holds where two blocks meet.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has 2 blocks, expected one: no rule says what holds where they meet}}
func.func @second_block(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^bb1
^bb1:
  return %x : tensor<4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
func.func @collective_in_a_region(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  // expected-error@+1 {{'scf.if' op has a region, expected none: no rule says what holds in it}}
  %r = scf.if %c -> tensor<4xf32> {
    %z = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 0 : i64} : tensor<4xf32> -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
}

// -----

// expected-error@+1 {{has tfm.grid = 3 : i64, expected positive numbers of ranks of tp, cp and dp}}
module attributes {tfm.grid = 3 : i64} {}

// -----

// expected-error@+1 {{has tfm.grid = {tp = "x"}, expected positive numbers of ranks of tp, cp and dp}}
module attributes {tfm.grid = {tp = "x"}} {}

// -----

// expected-error@+1 {{has tfm.grid = {cp = -1 : i64, dp = 1 : i64, tp = 0 : i64}, expected positive numbers of ranks}}
module attributes {tfm.grid = {tp = 0 : i64, cp = -1 : i64, dp = 1 : i64}} {}

// -----

// expected-error@+1 {{has tfm.grid = {pp = 2 : i64, tp = 2 : i64}, expected positive numbers of ranks of tp, cp and dp}}
module attributes {tfm.grid = {tp = 2 : i64, pp = 2 : i64}} {}

// -----

// expected-error@+1 {{of kv and replica, whose product it is}}
module attributes {tfm.grid = {tp = 4 : i64, cp = 1 : i64, dp = 1 : i64, kv = 3 : i64, replica = 2 : i64}} {}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{'shard.grid' op has axes of 4, 1, 1 ranks, where tfm.grid has 2, 1, 1}}
shard.grid @grid(shape = 4x1x1)
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has argument 0 on cp, which is no axis of the grid}}
func.func @argument_on_an_axis_that_is_not_there(%x: tensor<4xf32, #tfm.dist<cp = P sum f32>>) {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has result 0 on dp, which is no axis of the grid}}
func.func private @result_on_an_axis_that_is_not_there() -> tensor<4xf32, #tfm.dist<dp = S0>>
}

// -----

module attributes {tfm.grid = {tp = 4 : i64, cp = 1 : i64, dp = 1 : i64, kv = 2 : i64, replica = 2 : i64}} {
// expected-error@+1 {{has argument 0 on tp, which is no axis of the grid}}
func.func @argument_on_an_axis_that_is_split(%x: tensor<4xf32, #tfm.dist<tp = S0>>) {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has argument 0 whose dimension 0 of 100 elements on each of 1 ranks is not [[4, 1, 1, 4]]}}
func.func @layout_of_another_dimension(%x: tensor<100xf32, #tfm.dist<layout = {0 : [4, 1, 1, 4]}>>) {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @offset_in_other_parts(%i: tensor<1x4xi64>, %t: tensor<4x4xf32, #tfm.dist<tp = S0>>) -> tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>> {
  %o = tfm.shard_offset {axes = ["tp"], size = 7 : i64} : tensor<i64, #tfm.dist<tp = V>>
  // expected-error@+1 {{'tfm.embedding' op has an offset in parts of 7, expected 4, the rows that a rank holds}}
  %y = tfm.embedding %i, %t offset %o : (tensor<1x4xi64>, tensor<4x4xf32, #tfm.dist<tp = S0>>, tensor<i64, #tfm.dist<tp = V>>) -> tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
func.func @offset_that_anybody_may_pass(%i: tensor<1x4xi64>, %t: tensor<4x4xf32, #tfm.dist<tp = S0>>, %o: tensor<i64, #tfm.dist<tp = V>>) -> tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>> {
  // expected-error@+1 {{'tfm.embedding' op has an offset that is no tfm.shard_offset}}
  %y = tfm.embedding %i, %t offset %o : (tensor<1x4xi64>, tensor<4x4xf32, #tfm.dist<tp = S0>>, tensor<i64, #tfm.dist<tp = V>>) -> tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>>
  return %y : tensor<1x4x4xf32, #tfm.dist<tp = P sum f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
func.func @queries_that_stand_nowhere(%q: tensor<1x4x8xf32, #tfm.dist<cp = S1x2>>, %k: tensor<1x8x8xf32>) -> tensor<1x4x8xf32, #tfm.dist<cp = S1x2>> {
  %z = arith.constant dense<0> : tensor<4xi64, #tfm.dist<cp = S0x2>>
  // expected-error@+1 {{'tfm.attention' op has sharded rows of queries, whose query_index is no tfm.global_index}}
  %o, %l = tfm.attention %q, %k, %k query_index %z causal top_left {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x8xf32, #tfm.dist<cp = S1x2>>, tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<4xi64, #tfm.dist<cp = S0x2>>) -> (tensor<1x4x8xf32, #tfm.dist<cp = S1x2>>, tensor<1x1x4xf32, #tfm.dist<cp = S2x2>>)
  return %o : tensor<1x4x8xf32, #tfm.dist<cp = S1x2>>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
func.func @a_sum_that_no_type_asks_for(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+2 {{'shard.reduce' op has no rule}}
  // expected-note@+1 {{operand 0 is R}}
  %0 = shard.reduce %x on @grid grid_axes = [0] root = [0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
func.func @a_rank_is_not_the_same_everywhere() {
  // expected-error@+1 {{'shard.process_linear_index' op has no rule}}
  %0 = shard.process_linear_index on @grid : index
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x2x1)
func.func @two_chunks_with_another_axis(%x: tensor<1x4x8xf32, #tfm.dist<tp = S1, cp = S1x2>>) -> tensor<1x16x8xf32> {
  // expected-error@+2 {{'shard.all_gather' op gathers two chunks of cp together with another axis}}
  // expected-note@+1 {{operand 0 is tp=S1, cp=S1x2}}
  %0 = shard.all_gather %x on @grid grid_axes = [1, 0] gather_axis = 1 {tfm.two_chunk} : tensor<1x4x8xf32, #tfm.dist<tp = S1, cp = S1x2>> -> tensor<1x16x8xf32>
  return %0 : tensor<1x16x8xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 4 : i64, cp = 1 : i64, dp = 1 : i64, kv = 2 : i64, replica = 2 : i64}} {
func.func @offset_of_another_order(%i: tensor<1x4xi64>, %t: tensor<4x4xf32, #tfm.dist<kv = S0, replica = S0>>) {
  // expected-error@+1 {{'tfm.shard_offset' op names axes in another order than they nest}}
  %o = tfm.shard_offset {axes = ["replica", "kv"], size = 4 : i64} : tensor<i64, #tfm.dist<kv = V, replica = V>>
  return
}
}

// -----

// expected-error@+1 {{has tfm.grid = {cp = 2 : i64, dp = 2 : i64}, expected positive numbers of ranks of tp, cp and dp}}
module attributes {tfm.grid = {cp = 2 : i64, dp = 2 : i64}} {
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{is a module in a partitioned one, expected none}}
module {
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has the accumulator of 'w' on tp=P max f32, expected P sum f32 over tp}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}, %a: tensor<2xf32, #tfm.dist<tp = P max f32>> {tfm.accumulator = "w"})
    -> (tensor<2xf32, #tfm.dist<tp = P max f32>> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return %a : tensor<2xf32, #tfm.dist<tp = P max f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has the loss on R, expected a sum that is partial over cp}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}, %a: tensor<2xf32, #tfm.dist<cp = P sum f32>> {tfm.accumulator = "w"}, %l: tensor<f64> {tfm.input = "l"})
    -> (tensor<f64> {tfm.output = "loss"}, tensor<2xf32, #tfm.dist<cp = P sum f32>> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return %l, %a : tensor<f64>, tensor<2xf32, #tfm.dist<cp = P sum f32>>
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has input 0 on cp=S1x2, of which a rank of cp is given all}}
func.func @microbatch(%labels: tensor<1x8xi64, #tfm.dist<cp = S1x2>> {tfm.input = "labels"}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has input 0 on R, of which a rank of cp is given two chunks of dimension 1}}
func.func @microbatch(%labels: tensor<1x8xi64> {tfm.input = "labels", tfm.cut_dim = 1 : i64}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has argument 0 of 'tensor<12x24xf32, #tfm.dist<tp = S0>>', which is no part of [96, 24] on tp=S0}}
func.func @microbatch(%w: tensor<12x24xf32, #tfm.dist<tp = S0>> {tfm.parameter = "w", tfm.global_shape = array<i64: 96, 24>}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has output 0 of 'tensor<4xf32, #tfm.dist<tp = S0>>', which is no part of [4] on tp=S0}}
func.func @microbatch(%w: tensor<4xf32, #tfm.dist<tp = S0>> {tfm.parameter = "w", tfm.global_shape = array<i64: 8>})
    -> (tensor<4xf32, #tfm.dist<tp = S0>> {tfm.output = "y", tfm.global_shape = array<i64: 4>}) attributes {tfm.microbatch} {
  return %w : tensor<4xf32, #tfm.dist<tp = S0>>
}
}

// -----

// One row of 25 is nobody's.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has argument 0 of 'tensor<12x24xf32, #tfm.dist<tp = S0>>', which is no part of [25, 24] on tp=S0}}
func.func @microbatch(%w: tensor<12x24xf32, #tfm.dist<tp = S0>> {tfm.parameter = "w", tfm.global_shape = array<i64: 25, 24>}) attributes {tfm.microbatch} {
  return
}
}

// -----

// Padded from 25 rows, not from 24.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{which is no part of [24, 24] on tp=S0, layout of 0 [[25, 1, 1, 26]]}}
func.func @microbatch(%w: tensor<13x24xf32, #tfm.dist<tp = S0, layout = {0 : [25, 1, 1, 26]}>> {tfm.parameter = "w", tfm.global_shape = array<i64: 24, 24>}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
// expected-error@+1 {{has parameter 0 on tp=S0 without 'tfm.global_shape', the model's shape of it}}
func.func @microbatch(%w: tensor<12x24xf32, #tfm.dist<tp = S0>> {tfm.parameter = "w"}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 1 : i64, dp = 2 : i64}} {
// expected-error@+1 {{has parameter 0 on dp=S0, of which each rank of dp has all}}
func.func @microbatch(%w: tensor<12xf32, #tfm.dist<dp = S0>> {tfm.parameter = "w", tfm.global_shape = array<i64: 24>}) attributes {tfm.microbatch} {
  return
}
}

// -----

module attributes {tfm.grid = {tp = 1 : i64, cp = 2 : i64, dp = 1 : i64}} {
func.func @chunks_of_an_axis_of_one_rank() -> tensor<8xi64, #tfm.dist<cp = S0x2>> {
  // expected-error@+1 {{is in two chunks of tp, expected cp first}}
  %0 = tfm.global_index {axes = ["tp", "cp"], two_chunk} : tensor<8xi64, #tfm.dist<cp = S0x2>>
  return %0 : tensor<8xi64, #tfm.dist<cp = S0x2>>
}
}

// -----

// expected-error@+1 {{has a type on tp=S0, where the module has no 'tfm.grid'}}
func.func @no_grid(%x: tensor<4xf32, #tfm.dist<tp = S0>>) {
  return
}
