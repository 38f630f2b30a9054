// RUN: not drover-interpret %s --entry=unknown_op 2>&1 | FileCheck %s --check-prefix=OP
// RUN: not drover-interpret %s --entry=out_of_range 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not drover-interpret %s --entry=divide 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not drover-interpret %s --entry=argument 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not drover-interpret %s --entry=huge 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not drover-interpret %s --entry=nothing 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not drover-interpret %s --entry=recursive 2>&1 | FileCheck %s --check-prefix=RECURSIVE

// OP: error: 'tensor.empty': has no kernel
func.func @unknown_op() -> tensor<2xf32> {
  %0 = tensor.empty() : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// RANGE: error: 'tfm.embedding': id 4 is not in [0, 4)
func.func @out_of_range() -> tensor<1x2xf32> {
  %two = arith.constant dense<2> : tensor<1xi64>
  %ids = arith.addi %two, %two : tensor<1xi64>
  %table = arith.constant dense<1.0> : tensor<4x2xf32>
  %0 = tfm.embedding %ids, %table : (tensor<1xi64>, tensor<4x2xf32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// ZERO: error: 'arith.divsi': element 1 has no result: division by zero
func.func @divide() -> tensor<2xi64> {
  %0 = arith.constant dense<[1, 0]> : tensor<2xi64>
  %1 = arith.divsi %0, %0 : tensor<2xi64>
  return %1 : tensor<2xi64>
}

// ARGUMENT: error: argument 'x': expected a value
func.func @argument(%x: tensor<2xf32> {tfm.input = "x"}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// HUGE: error: 'tfm.iota': result of shape [1099511627776x1099511627776] is too large
func.func @huge() -> tensor<1099511627776x1099511627776xi64> {
  %0 = tfm.iota {axis = 0 : i64} : tensor<1099511627776x1099511627776xi64>
  return %0 : tensor<1099511627776x1099511627776xi64>
}

// ENTRY: error: no function @nothing with a body
func.func private @nothing()

// RECURSIVE: error: {{.*}}calls nest too deep
func.func @recursive() -> tensor<2xf32> {
  %0 = call @recursive() : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
