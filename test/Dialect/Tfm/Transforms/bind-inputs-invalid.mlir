// RUN: %drover-opt --tfm-bind-inputs="inputs=x=ones" --split-input-file --verify-diagnostics %s
// RUN: not %drover-opt --tfm-bind-inputs="inputs=x=twos" --split-input-file %s 2>&1 | FileCheck %s --check-prefix=VALUE

// VALUE: error: expects inputs of the form NAME=ones|zeros|arange, not 'x=twos'

// expected-error @+1 {{has no input 'x' to bind}}
func.func @model(%m: tensor<2x4xi64> {tfm.input = "attention_mask"}) -> tensor<2x4xi64> {
  return %m : tensor<2x4xi64>
}

// -----

// expected-error @+1 {{expects input 'x' to be an integer tensor of known sizes, not 'tensor<2x4xf32>'}}
func.func @model(%x: tensor<2x4xf32> {tfm.input = "x"}) -> tensor<2x4xf32> {
  return %x : tensor<2x4xf32>
}

// -----

// expected-error @+1 {{expects a function @model}}
module {
  func.func @other(%x: tensor<2x4xi64> {tfm.input = "x"}) -> tensor<2x4xi64> {
    return %x : tensor<2x4xi64>
  }
}
