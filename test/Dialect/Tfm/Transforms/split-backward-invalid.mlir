// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-split-backward

// expected-error@+1 {{expects a function @microbatch}}
module {
}

// -----

// expected-error@+1 {{calls no backward to split; tfm-differentiate comes before}}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

func.func @microbatch(%x: tensor<2xf32> {tfm.input = "x"}) attributes {tfm.microbatch} {
  // expected-error@+1 {{is not the call of a body; tfm-differentiate comes before}}
  %0 = math.tanh %x : tensor<2xf32>
  return
}

// -----

func.func private @w() attributes {tfm.body = "weight_gradient"} {
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  // expected-error@+1 {{calls a weight gradient: backwards are split already}}
  call @w() : () -> ()
  return
}
