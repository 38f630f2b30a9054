// RUN: %drover-opt %s --tfm-share-gathers --tfm-verify-distributions | FileCheck %s

// Of two calls each: `%dy` comes from outside, so that the gathered value is a further result; `%d` nobody else reads,
// and the gathered value takes its place on both sides; `%e` is also read as it is; `%f` the input part does not gather.
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)

// CHECK-LABEL: func.func @microbatch(
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<2x4xf32, #tfm.dist<tp = S0>>
// CHECK: %[[ONE:.*]]:6 = call @layer_backward(%[[DY]]) {tfm.layer = 1 : i64}
// CHECK: %[[ZERO:.*]]:6 = call @layer_backward(%[[ONE]]#0) {tfm.layer = 0 : i64}
// CHECK: call @layer_weight_gradient(%[[ONE]]#4, %[[ONE]]#1, %[[ONE]]#2, %[[ONE]]#3, %{{.*}}, %[[ONE]]#5) {tfm.layer = 1 : i64}
// CHECK: call @layer_weight_gradient(%[[ZERO]]#4, %[[ZERO]]#1, %[[ZERO]]#2, %[[ZERO]]#3, %{{.*}}, %[[ZERO]]#5) {tfm.layer = 0 : i64}
func.func @microbatch(%dy: tensor<2x4xf32, #tfm.dist<tp = S0>> {tfm.input = "dy"}, %sum1: tensor<4x4xf32> {tfm.accumulator = "b"}, %sum0: tensor<4x4xf32> {tfm.accumulator = "a"}) -> (tensor<4x4xf32> {tfm.accumulator = "b"}, tensor<4x4xf32> {tfm.accumulator = "a"}) attributes {tfm.microbatch} {
  %one:4 = call @layer_backward(%dy) {tfm.layer = 1 : i64} : (tensor<2x4xf32, #tfm.dist<tp = S0>>) -> (tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>)
  %zero:4 = call @layer_backward(%one#0) {tfm.layer = 0 : i64} : (tensor<2x4xf32, #tfm.dist<tp = S0>>) -> (tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>)
  %b = call @layer_weight_gradient(%dy, %one#1, %one#2, %one#3, %sum1) {tfm.layer = 1 : i64} : (tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = call @layer_weight_gradient(%one#0, %zero#1, %zero#2, %zero#3, %sum0) {tfm.layer = 0 : i64} : (tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b, %a : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func private @layer_backward(
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<2x4xf32, #tfm.dist<tp = S0>>
// CHECK-SAME: -> (tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<4x4xf32>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK: %[[A:.*]] = shard.all_gather %[[DY]]
// CHECK: %[[D:.*]] = math.tanh
// CHECK: %[[B:.*]] = shard.all_gather %[[D]]
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[C:.*]] = shard.all_gather %[[E]]
// CHECK: %[[F:.*]] = math.absf
// CHECK: return %{{.*}}, %[[B]], %[[E]], %[[F]], %[[A]], %[[C]] :
func.func private @layer_backward(%dy: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> (tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>) attributes {tfm.body = "backward"} {
  %0 = shard.all_gather %dy on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %1 = shard.all_slice %0 on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  %d = math.tanh %1 : tensor<2x4xf32, #tfm.dist<tp = S0>>
  %2 = shard.all_gather %d on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %3 = shard.all_slice %2 on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  %e = math.exp %3 : tensor<2x4xf32, #tfm.dist<tp = S0>>
  %4 = shard.all_gather %e on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %5 = shard.all_slice %4 on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  %f = math.absf %5 : tensor<2x4xf32, #tfm.dist<tp = S0>>
  return %f, %d, %e, %f : tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>, tensor<2x4xf32, #tfm.dist<tp = S0>>
}

// CHECK-LABEL: func.func private @layer_weight_gradient(
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<4x4xf32>, %[[D:[a-z0-9]+]]: tensor<4x4xf32>, %[[E:[a-z0-9]+]]: tensor<2x4xf32, #tfm.dist<tp = S0>>, %[[F:[a-z0-9]+]]: tensor<2x4xf32, #tfm.dist<tp = S0>>, %[[SUM:[a-z0-9]+]]: tensor<4x4xf32>, %[[WHOLE:[a-z0-9]+]]: tensor<4x4xf32>)
// CHECK-SAME: -> (tensor<4x4xf32> {tfm.inplace = 4 : i64})
// CHECK-NEXT: %[[G:.*]] = shard.all_gather %[[F]]
// CHECK-NEXT: %[[OWN:.*]] = math.absf %[[E]]
// CHECK-NEXT: %[[H:.*]] = shard.all_gather %[[OWN]]
// CHECK-NEXT: %[[X:.*]] = arith.addf %[[DY]], %[[D]]
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[WHOLE]]
func.func private @layer_weight_gradient(%dy: tensor<2x4xf32, #tfm.dist<tp = S0>>, %d: tensor<2x4xf32, #tfm.dist<tp = S0>>, %e: tensor<2x4xf32, #tfm.dist<tp = S0>>, %f: tensor<2x4xf32, #tfm.dist<tp = S0>>, %sum: tensor<4x4xf32>) -> (tensor<4x4xf32> {tfm.inplace = 4 : i64}) attributes {tfm.body = "weight_gradient"} {
  %0 = shard.all_gather %dy on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %1 = shard.all_gather %d on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %2 = shard.all_gather %e on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %3 = shard.all_gather %f on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %own = math.absf %e : tensor<2x4xf32, #tfm.dist<tp = S0>>
  %4 = shard.all_gather %own on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %5 = arith.addf %0, %1 : tensor<4x4xf32>
  %6 = arith.addf %5, %2 : tensor<4x4xf32>
  %7 = arith.addf %6, %3 : tensor<4x4xf32>
  %8 = arith.addf %7, %4 : tensor<4x4xf32>
  %9 = tfm.accumulate %8, %sum : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %9 : tensor<4x4xf32>
}
}
