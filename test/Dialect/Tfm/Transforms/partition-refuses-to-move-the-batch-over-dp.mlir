// RUN: %drover-opt %s -verify-diagnostics --tfm-partition="tp=2 dp=2"

// A dp rank has its own rows of the batch, and no collective of a body gives it those of others.
func.func private @body(%ids: tensor<2x16xi64>, %w: tensor<8x4xf32>) -> tensor<2x16x4xf32> attributes {tfm.body = "forward"} {
  %x = tfm.embedding %ids, %w : (tensor<2x16xi64>, tensor<8x4xf32>) -> tensor<2x16x4xf32>
  // expected-error@+1 {{'tfm.softmax' op cannot be partitioned: dimension 0 is the batch of a dp rank in one of its values and not in another; accepted with dp 1}}
  %0 = tfm.softmax %x {axis = 0 : i64} : tensor<2x16x4xf32> -> tensor<2x16x4xf32>
  return %0 : tensor<2x16x4xf32>
}
func.func @microbatch(%ids: tensor<2x16xi64> {tfm.input = "input_ids"}, %w: tensor<8x4xf32> {tfm.parameter = "w"}) -> (tensor<2x16x4xf32> {tfm.output = "y"}) attributes {tfm.microbatch} {
  %0 = call @body(%ids, %w) : (tensor<2x16xi64>, tensor<8x4xf32>) -> tensor<2x16x4xf32>
  return %0 : tensor<2x16x4xf32>
}
