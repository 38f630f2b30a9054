// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-specialize=sizes=batch=2,length=8

// expected-error@+1 {{has no symbolic size 'length'; it has 'batch', 'sequence'}}
module attributes {tfm.symbols = ["batch", "sequence"]} {}

// -----

// expected-error@+1 {{has no symbolic size 'batch'; all its sizes are fixed}}
module {}

// -----

// expected-error@+1 {{needs a value for the symbolic sizes 'past', 'heads'}}
module attributes {tfm.symbols = ["batch", "past", "length", "heads"]} {}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  // expected-error@+1 {{argument 0 of type 'tensor<?x4xi64>' would have the sizes [2, 8]}}
  func.func @model(%ids: tensor<?x4xi64> {tfm.input = "x", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>}) {
    return
  }
}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  // expected-error@+1 {{argument 0 of type 'tensor<?xi64>' has dynamic sizes, but no 'tfm.shape'}}
  func.func @model(%ids: tensor<?xi64> {tfm.input = "x"}) {
    return
  }
}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model(%a: tensor<?xf32> {tfm.input = "a", tfm.shape = affine_map<()[s0, s1] -> (s0)>},
                   %b: tensor<?xf32> {tfm.input = "b", tfm.shape = affine_map<()[s0, s1] -> (s1)>}) {
    // expected-error@+1 {{has operands of different shapes at the given sizes: 'tensor<2xf32>' and 'tensor<8xf32>'}}
    %0 = arith.addf %a, %b : tensor<?xf32>
    return
  }
}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model(%a: tensor<?x4xf32> {tfm.input = "a", tfm.shape = affine_map<()[s0, s1] -> (s0, 4)>}) {
    // expected-error@+1 {{result 0 of 'tfm.slice' of type 'tensor<?x4xf32>' would have the sizes [-4, 4]}}
    %0 = tfm.slice %a {offsets = array<i64: 0, 0>, strides = array<i64: 1, 1>, shape = affine_map<()[s0, s1] -> (s0 - 6, 4)>} : tensor<?x4xf32> -> tensor<?x4xf32>
    return
  }
}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model(%a: tensor<?xf32> {tfm.input = "a", tfm.shape = affine_map<()[s0, s1] -> (s0)>}) {
    // expected-error@+1 {{has a result of type 'tensor<?xf32>', and no rule for its shape}}
    %0 = tensor.cast %a : tensor<?xf32> to tensor<?xf32>
    return
  }
}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model() {
    // expected-error@+1 {{'tfm.size' op has 'value' affine_map<()[s0, s1, s2] -> (s2)>, which the symbols do not determine}}
    %0 = tfm.size {value = affine_map<()[s0, s1, s2] -> (s2)>} : tensor<i64>
    return
  }
}

// -----

module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model(%table: tensor<7x4xf32> {tfm.parameter = "wpe"}) -> tensor<1x?x4xf32> {
    %0 = tfm.iota {axis = 1 : i64, shape = affine_map<()[s0, s1] -> (1, s1)>} : tensor<1x?xi64>
    // expected-error@+1 {{'tfm.embedding' op counts positions from 0 to 7 where the model has 7: accepted are up to 7, not batch=2, length=8}}
    %1 = tfm.embedding %0, %table : (tensor<1x?xi64>, tensor<7x4xf32>) -> tensor<1x?x4xf32>
    return %1 : tensor<1x?x4xf32>
  }
}

// -----

// From 2 on, as OPT counts; read through views.
module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model(%table: tensor<9x4xf32> {tfm.parameter = "wpe"}) -> tensor<?x?x4xf32> {
    %0 = tfm.iota {axis = 0 : i64, shape = affine_map<()[s0, s1] -> (s1)>} : tensor<?xi64>
    %two = tfm.fill {value = 2 : i64, shape = affine_map<()[s0, s1] -> (s1)>} : tensor<?xi64>
    %1 = arith.addi %0, %two : tensor<?xi64>
    %2 = tfm.broadcast %1 {shape = affine_map<()[s0, s1] -> (s0, s1)>} : tensor<?xi64> -> tensor<?x?xi64>
    // expected-error@+1 {{'tfm.embedding' op counts positions from 2 to 9 where the model has 9}}
    %3 = tfm.embedding %2, %table : (tensor<?x?xi64>, tensor<9x4xf32>) -> tensor<?x?x4xf32>
    return %3 : tensor<?x?x4xf32>
  }
}

// -----

// As many positions as rows are accepted.
module attributes {tfm.symbols = ["batch", "length"]} {
  func.func @model(%table: tensor<8x4xf32> {tfm.parameter = "wpe"}) -> tensor<1x?x4xf32> {
    %0 = tfm.iota {axis = 1 : i64, shape = affine_map<()[s0, s1] -> (1, s1)>} : tensor<1x?xi64>
    %1 = tfm.embedding %0, %table : (tensor<1x?xi64>, tensor<8x4xf32>) -> tensor<1x?x4xf32>
    return %1 : tensor<1x?x4xf32>
  }
}
