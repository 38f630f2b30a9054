// RUN: %drover-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(tfm-simplify-collectives),tfm-verify-distributions)" | FileCheck %s

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)

// CHECK-LABEL: func.func @gather_of_slice(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK-NEXT: return %[[X]]
func.func @gather_of_slice(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %s = shard.all_slice %x on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  %g = shard.all_gather %s on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @slice_of_gather(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK-NEXT: return %[[X]]
func.func @slice_of_gather(%x: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> tensor<2x4xf32, #tfm.dist<tp = S0>> {
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %s = shard.all_slice %g on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  return %s : tensor<2x4xf32, #tfm.dist<tp = S0>>
}

// Along another dimension they are no inverses.
// CHECK-LABEL: func.func @slice_along_another_dimension(
// CHECK: shard.all_gather
// CHECK: shard.all_slice
func.func @slice_along_another_dimension(%x: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> tensor<4x2xf32, #tfm.dist<tp = S1>> {
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %s = shard.all_slice %g on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  return %s : tensor<4x2xf32, #tfm.dist<tp = S1>>
}

// CHECK-LABEL: func.func @slice_of_reduce(
// CHECK-NEXT: %[[Y:.*]] = shard.reduce_scatter %{{.*}} on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 3 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @slice_of_reduce(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4x2xf32, #tfm.dist<tp = S1>> {
  %r = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 3 : i64} : tensor<4x4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4x4xf32>
  %s = shard.all_slice %r on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  return %s : tensor<4x2xf32, #tfm.dist<tp = S1>>
}

// CHECK-LABEL: func.func @gather_of_scatter(
// CHECK-NEXT: %[[Y:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [0] {tfm.reduction = 4 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @gather_of_scatter(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4x4xf32> {
  %s = shard.reduce_scatter %x on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 4 : i64} : tensor<4x4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  %g = shard.all_gather %s on @grid grid_axes = [0] gather_axis = 1 : tensor<4x2xf32, #tfm.dist<tp = S1>> -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: %[[Y:.*]] = shard.all_gather
// CHECK-NEXT: return %[[Y]], %[[Y]]
func.func @twice(%x: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %b = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}
}

// -----

module attributes {tfm.grid = {tp = 4 : i64, cp = 1 : i64, dp = 1 : i64, kv = 2 : i64, replica = 2 : i64}} {
shard.grid @grid(shape = 2x2x1x1)

// A part may be taken axis by axis.
// CHECK-LABEL: func.func @slices_of_reduce(
// CHECK-NEXT: %[[Y:.*]] = shard.reduce_scatter %{{.*}} on @grid grid_axes = [0, 1] scatter_axis = 1 {tfm.reduction = 3 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @slices_of_reduce(%x: tensor<4x4xf32, #tfm.dist<kv = P sum f32, replica = P sum f32>>) -> tensor<4x1xf32, #tfm.dist<kv = S1, replica = S1>> {
  %r = shard.all_reduce %x on @grid grid_axes = [0, 1] {tfm.reduction = 3 : i64} : tensor<4x4xf32, #tfm.dist<kv = P sum f32, replica = P sum f32>> -> tensor<4x4xf32>
  %k = shard.all_slice %r on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<kv = S1>>
  %s = shard.all_slice %k on @grid grid_axes = [1] slice_axis = 1 : tensor<4x2xf32, #tfm.dist<kv = S1>> -> tensor<4x1xf32, #tfm.dist<kv = S1, replica = S1>>
  return %s : tensor<4x1xf32, #tfm.dist<kv = S1, replica = S1>>
}

// Along two dimensions, and where the first part is read too, the sum stays whole.
// CHECK-LABEL: func.func @slices_along_two_dimensions(
// CHECK: shard.all_reduce
func.func @slices_along_two_dimensions(%x: tensor<4x4xf32, #tfm.dist<kv = P sum f32, replica = P sum f32>>) -> tensor<2x2xf32, #tfm.dist<kv = S1, replica = S0>> {
  %r = shard.all_reduce %x on @grid grid_axes = [0, 1] {tfm.reduction = 4 : i64} : tensor<4x4xf32, #tfm.dist<kv = P sum f32, replica = P sum f32>> -> tensor<4x4xf32>
  %k = shard.all_slice %r on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<kv = S1>>
  %s = shard.all_slice %k on @grid grid_axes = [1] slice_axis = 0 : tensor<4x2xf32, #tfm.dist<kv = S1>> -> tensor<2x2xf32, #tfm.dist<kv = S1, replica = S0>>
  return %s : tensor<2x2xf32, #tfm.dist<kv = S1, replica = S0>>
}

// CHECK-LABEL: func.func @slice_that_is_read_twice(
// CHECK: shard.all_reduce
func.func @slice_that_is_read_twice(%x: tensor<4x4xf32, #tfm.dist<kv = P sum f32, replica = P sum f32>>) -> (tensor<4x2xf32, #tfm.dist<kv = S1>>, tensor<4x1xf32, #tfm.dist<kv = S1, replica = S1>>) {
  %r = shard.all_reduce %x on @grid grid_axes = [0, 1] {tfm.reduction = 5 : i64} : tensor<4x4xf32, #tfm.dist<kv = P sum f32, replica = P sum f32>> -> tensor<4x4xf32>
  %k = shard.all_slice %r on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<kv = S1>>
  %s = shard.all_slice %k on @grid grid_axes = [1] slice_axis = 1 : tensor<4x2xf32, #tfm.dist<kv = S1>> -> tensor<4x1xf32, #tfm.dist<kv = S1, replica = S1>>
  return %k, %s : tensor<4x2xf32, #tfm.dist<kv = S1>>, tensor<4x1xf32, #tfm.dist<kv = S1, replica = S1>>
}
}

// -----

// Of two grids the collectives are not of one group, whatever their axes' numbers.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)
shard.grid @other(shape = 2x1x1)

// CHECK-LABEL: func.func @slice_on_another_grid(
// CHECK: shard.all_reduce
// CHECK: shard.all_slice
func.func @slice_on_another_grid(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4x2xf32, #tfm.dist<tp = S1>> {
  %r = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 6 : i64} : tensor<4x4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4x4xf32>
  %s = shard.all_slice %r on @other grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  return %s : tensor<4x2xf32, #tfm.dist<tp = S1>>
}
}
