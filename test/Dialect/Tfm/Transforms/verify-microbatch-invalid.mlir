// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-verify-microbatch

// expected-error@+1 {{expects the attribute 'tfm.microbatch'}}
func.func @microbatch() {
  return
}

// -----

// expected-error@+1 {{expects 'tfm.body' to be one of 'forward', 'backward', 'weight_gradient', 'update', 'norm', not 'sideways'}}
func.func private @f() attributes {tfm.body = "sideways"} {
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{expects static tensors, not 'tensor<?xf32>'}}
func.func private @f(%x: tensor<?xf32>) attributes {tfm.body = "forward"} {
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{expects a body to be a private function of one block}}
func.func @f() attributes {tfm.body = "forward"} {
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

func.func private @g() attributes {tfm.body = "forward"} {
  return
}
func.func private @f() attributes {tfm.body = "forward"} {
  // expected-error@+1 {{cannot stand in a body, which is straight-line}}
  call @g() : () -> ()
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{expects 'tfm.inplace' of result 0 to be below 1, not 3}}
func.func private @f(%a: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 3 : i64}) attributes {tfm.body = "forward"} {
  return %a : tensor<2xf32>
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{has two results in the memory of argument 0}}
func.func private @f(%a: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 0 : i64}, tensor<2xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "forward"} {
  return %a, %a : tensor<2xf32>, tensor<2xf32>
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{result 0 of type 'tensor<2xf32>' cannot live in argument 0 of type 'tensor<4xf32>'}}
func.func private @f(%a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "forward"} {
  return %b : tensor<2xf32>
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

func.func private @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> attributes {tfm.body = "backward"} {
  // expected-error@+1 {{expects to be returned once, in place of argument 0}}
  %0 = tfm.accumulate %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

func.func private @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "backward"} {
  // expected-error@+1 {{expects an argument of the body that nobody else reads}}
  %0 = tfm.accumulate %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{expects argument 0 to have one of 'tfm.input', 'tfm.seed', 'tfm.parameter', 'tfm.accumulator', not 0}}
func.func @microbatch(%x: tensor<2xf32>) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{'tfm.parameter' expects distinct names, "w" is that of argument 1 and of one before it}}
func.func @microbatch(%x: tensor<2xf32> {tfm.parameter = "w"}, %y: tensor<2xf32> {tfm.parameter = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{has two accumulators for the parameter 'w'}}
func.func @microbatch(%x: tensor<2xf32> {tfm.accumulator = "w"}, %y: tensor<2xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{has an accumulator for 'w', which is no parameter}}
func.func @microbatch(%x: tensor<2xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{expects the accumulator of 'w' to be 'tensor<2xf32>', not 'tensor<2xbf16>'}}
func.func @microbatch(%w: tensor<2xbf16> {tfm.parameter = "w"}, %x: tensor<2xbf16> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

func.func @microbatch(%x: tensor<2xf32> {tfm.input = "x"}) attributes {tfm.microbatch} {
  // expected-error@+1 {{is not the call of a forward, backward or weight_gradient body}}
  %0 = math.tanh %x : tensor<2xf32>
  return
}

// -----

func.func private @f() attributes {tfm.body = "forward"} {
  return
}
func.func private @b() attributes {tfm.body = "backward"} {
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  call @b() : () -> ()
  // expected-error@+1 {{calls a forward body after a backward one}}
  call @f() : () -> ()
  return
}

// -----

func.func private @b() attributes {tfm.body = "backward"} {
  return
}
func.func private @w() attributes {tfm.body = "weight_gradient"} {
  return
}
func.func @microbatch() attributes {tfm.microbatch} {
  call @w() : () -> ()
  // expected-error@+1 {{calls a backward body after a weight_gradient one}}
  call @b() : () -> ()
  return
}

// -----

// expected-error@+1 {{expects every result of a weight gradient to be an accumulator in place, not result 1}}
func.func private @w(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 0 : i64}, tensor<2xf32>) attributes {tfm.body = "weight_gradient"} {
  %0 = tfm.accumulate %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %b : tensor<2xf32>, tensor<2xf32>
}
func.func @microbatch() attributes {tfm.microbatch} {
  return
}

// -----

func.func private @b(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.accumulate %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}, %a: tensor<2xf32> {tfm.accumulator = "w"})
    -> (tensor<2xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  // expected-error@+1 {{overwrites operand 0 in place, which is used later as operand 0}}
  %0 = call @b(%a, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = call @b(%a, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

func.func private @b(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.accumulate %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}, %a: tensor<2xf32> {tfm.accumulator = "w"})
    -> (tensor<2xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  // expected-error@+1 {{overwrites operand 0 in place, which it also reads as operand 1}}
  %0 = call @b(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error@+1 {{expects result 0 to be what in-place calls make of the accumulator of 'w'}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}, %a: tensor<2xf32> {tfm.accumulator = "w"})
    -> (tensor<2xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return %w : tensor<2xf32>
}

// -----

// expected-error@+1 {{returns the accumulator of 'w' 0 times, not once}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}, %a: tensor<2xf32> {tfm.accumulator = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{expects result 0 to have one of 'tfm.output' and 'tfm.accumulator'}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}) -> tensor<2xf32> attributes {tfm.microbatch} {
  return %w : tensor<2xf32>
}
