// RUN: %drover-opt %s --convert-tfm-to-rt --split-input-file --verify-diagnostics

// expected-error @below {{'func.func' op expects static sizes, not 'tensor<?xf32>'; only update and norm bodies are flat}}
func.func private @body(%x: tensor<?xf32>) -> tensor<?xf32> attributes {tfm.body = "forward"} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @below {{'func.func' op expects sizes that are not zero, not 'tensor<0x4xf32>'}}
func.func private @body(%x: tensor<0x4xf32>) attributes {tfm.body = "forward"} {
  return
}

// -----

// expected-error @below {{'func.func' op expects ranked tensors in a body, not 'f32'}}
func.func private @body(%x: f32) attributes {tfm.body = "forward"} {
  return
}

// -----

// expected-error @below {{'func.func' op expects elements that are integers or floats, not 'index'}}
func.func private @body(%x: tensor<4xindex>) attributes {tfm.body = "forward"} {
  return
}

// -----

// expected-error @below {{'func.func' op expects tfm.inplace of result 0 to name an argument of type 'tensor<4xf32>', not argument 1}}
func.func private @body(%x: tensor<4xf32>) -> (tensor<4xf32> {tfm.inplace = 1 : i64}) attributes {tfm.body = "forward"} {
  return %x : tensor<4xf32>
}

// -----

func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32>
func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'func.call' op is not supported in a body}}
  %0 = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @body(%x: tensor<2x4x8xf64>) -> tensor<2x4x8xf64> attributes {tfm.body = "forward"} {
  // expected-error @below {{'tfm.attention' op is supported in f32 and bf16 by the host target, not in 'f64'}}
  %0, %1 = tfm.attention %x, %x, %x {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf64>, tensor<2x4x8xf64>, tensor<2x4x8xf64>) -> (tensor<2x4x8xf64>, tensor<2x2x4xf64>)
  return %0 : tensor<2x4x8xf64>
}

// -----

func.func private @body(%x: tensor<4xbf16>) -> tensor<4xi16> attributes {tfm.body = "forward"} {
  // expected-error @below {{'arith.bitcast' op is not supported on 'i16' by the host target; cast through f32}}
  %0 = arith.bitcast %x : tensor<4xbf16> to tensor<4xi16>
  return %0 : tensor<4xi16>
}

// -----

func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'tensor.cast' op is not supported by the host target}}
  %0 = tensor.cast %x : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @body(%x: tensor<?xf32>) -> (tensor<f64>, tensor<?xf32>) attributes {tfm.body = "norm"} {
  // expected-error @below {{'arith.mulf' op needs memory of a size that is known at run time only; a flat body keeps nothing but its results}}
  %0 = arith.mulf %x, %x : tensor<?xf32>
  %1 = tfm.sum_of_squares %0 : (tensor<?xf32>) -> tensor<f64>
  return %1, %x : tensor<f64>, tensor<?xf32>
}

// -----

func.func private @body() -> tensor<2xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'arith.constant' op expects dense elements or a resource of 8 bytes}}
  %0 = arith.constant dense_resource<missing> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2)
func.func private @grid_of_other_axes(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects a shard.grid with the 3 axes of tfm.grid}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 4x2x1)
func.func private @grid_of_other_sizes(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects equal sizes of tp in tfm.grid and grid, not 2 and 4}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @axes_without_a_group(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects the axes tp, kv, replica, kv and replica, or cp, not tp, cp}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0, 1] {tfm.reduction = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 1, dp = 2}} {
shard.grid @grid(shape = 2x1x2)
func.func private @over_dp(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{is over dp: the model reads a sum over the batch, or a weight through arithmetic whose gradient does, and bodies do not communicate over dp; accepted with dp 1}}
  %0 = shard.all_reduce %x on @grid grid_axes = [2] {tfm.reduction = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 1, dp = 1}} {
shard.grid @grid(shape = 2x1x1)
func.func private @one_rank(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects a group of several ranks}}
  %0 = shard.all_reduce %x on @grid grid_axes = [1] {tfm.reduction = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @no_id(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects tfm.reduction, the number of the reduction that it discharges}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @minimum(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects the reduction sum or max, not min}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0] reduction = min {tfm.reduction = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @in_f16(%x: tensor<4x6xf16>) -> tensor<4x6xf16> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects a reduction in f32, bf16, f64 or i64, not in}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 0 : i64} : tensor<4x6xf16> -> tensor<4x6xf16>
  return %0 : tensor<4x6xf16>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @widening(%x: tensor<4x6xbf16>) -> tensor<4x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects one element type, not}}
  %0 = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 0 : i64} : tensor<4x6xbf16> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @two_chunks_of_an_odd_part(%x: tensor<3x6xf32>) -> tensor<6x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects tfm.two_chunk on one axis and an even part of a dimension}}
  %0 = shard.all_gather %x on @grid grid_axes = [1] gather_axis = 0 {tfm.two_chunk} : tensor<3x6xf32> -> tensor<6x6xf32>
  return %0 : tensor<6x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
shard.grid @grid(shape = 2x2x1)
func.func private @body(%x: tensor<4x6xf32>, %w: tensor<6x6xf32>) -> tensor<8x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects a ring over tp, or over kv and replica, not over ["cp"]}}
  %0 = tfm.gather_linear %x, %w {axes = ["cp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 1, dp = 1}} {
shard.grid @grid(shape = 2x1x1)
func.func private @body(%x: tensor<4x6xf16>, %w: tensor<6x6xf16>) -> tensor<8x6xf16> attributes {tfm.body = "forward"} {
  // expected-error @below {{is supported in f32 and bf16 by the host target, not in 'f16'}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x6xf16>, tensor<6x6xf16>) -> tensor<8x6xf16>
  return %0 : tensor<8x6xf16>
}
}

// -----

module attributes {tfm.grid = {tp = 2, cp = 1, dp = 1}} {
shard.grid @grid(shape = 2x1x1)
func.func private @body(%x: tensor<4x6xf32>, %w: tensor<6x6xf32>) -> tensor<2x6xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{expects tfm.reduction, the number of the reduction that it discharges}}
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}
}
