// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-outline

func.func @model(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{cannot be part of a body: it has regions or side effects}}
  %0 = memref.load %x[%c0] : memref<4xf32>
  return
}

// -----

func.func @model(%x: tensor<?xf32> {tfm.input = "x"}) {
  // expected-error@+1 {{has a result of type 'tensor<?xf32>'; tfm-specialize comes before}}
  %0 = math.tanh %x : tensor<?xf32>
  return
}

// -----

func.func @model() {
  return
}
// expected-error@+1 {{stands in the way of the function @microbatch that outlining makes}}
func.func @microbatch() {
  return
}

// -----

// expected-error@+1 {{expects one block, not 2}}
func.func @model() {
  cf.br ^next
^next:
  return
}
