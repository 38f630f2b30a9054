// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @unknown_kind(%x: tensor<2x8x64xf32>, %p: tensor<2x8xi64>) {
  // expected-error@+1 {{rope_scaling expects kind "linear" or "llama3", not "cubic"}}
  %0 = tfm.rope %x, %p {head_size = 8 : i64, rotary_dim = 8 : i64, theta = 1.0e4 : f64, scaling = #tfm.rope_scaling<kind = "cubic", factor = 2.0, low = 1.0, high = 4.0, original = 64>} : (tensor<2x8x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
  return
}
