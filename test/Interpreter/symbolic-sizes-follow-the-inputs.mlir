// RUN: drover-interpret %s --dim=batch=2 --dim=sequence=3 --input=ids=arange | FileCheck %s
// RUN: not drover-interpret %s --dim=batch=2 --input=ids=arange 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not drover-interpret %s --dim=width=2 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// OPEN: error: 'tfm.size': the value depends on a symbol without a value
// UNKNOWN: error: the module has no symbol named width
module attributes {tfm.symbols = ["batch", "sequence"]} {
  // CHECK: flat 6xi64: 4 5 6 4 5 6
  // CHECK: positions 2x3xi64: 1 3 5 1 3 5
  // CHECK: last 2x2xi64: 1 2 1 2
  // CHECK: padded 2x4xi64: 0 1 2 0 0 1 2 0
  func.func @model(%ids: tensor<?x?xi64> {tfm.input = "ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>})
      -> (tensor<?xi64> {tfm.output = "flat"}, tensor<?x?xi64> {tfm.output = "positions"},
          tensor<?x2xi64> {tfm.output = "last"}, tensor<?x?xi64> {tfm.output = "padded"}) {
    %size = tfm.size {value = affine_map<()[s0, s1] -> (s1 + 1)>} : tensor<i64>
    %sizes = tfm.broadcast %size {shape = affine_map<()[s0, s1] -> (s0, s1)>} : tensor<i64> -> tensor<?x?xi64>
    %sum = arith.addi %ids, %sizes : tensor<?x?xi64>
    %flat = tfm.reshape %sum {shape = affine_map<()[s0, s1] -> (s0 * s1)>} : tensor<?x?xi64> -> tensor<?xi64>
    %iota = tfm.iota {axis = 1 : i64, start = 1 : i64, step = 2 : i64, shape = affine_map<()[s0, s1] -> (s0, s1)>} : tensor<?x?xi64>
    %last = tfm.slice %ids {offsets = array<i64: 0, -9223372036854775808>, strides = array<i64: 1, 1>, offset_map = affine_map<()[s0, s1] -> (0, s1 - 2)>, shape = affine_map<()[s0, s1] -> (s0, 2)>} : tensor<?x?xi64> -> tensor<?x2xi64>
    %padded = tfm.pad %last {offsets = array<i64: 0, 1>, strides = array<i64: 1, 1>, shape = affine_map<()[s0, s1] -> (s0, s1 + 1)>} : tensor<?x2xi64> -> tensor<?x?xi64>
    return %flat, %iota, %last, %padded : tensor<?xi64>, tensor<?x?xi64>, tensor<?x2xi64>, tensor<?x?xi64>
  }
}
