// RUN: %drover-opt %s --convert-tfm-to-rt --split-input-file --verify-diagnostics

// expected-error @below {{'func.func' op expects static sizes, not 'tensor<?xf32>'; only update and norm bodies are flat}}
func.func private @body(%x: tensor<?xf32>) -> tensor<?xf32> attributes {tfm.body = "forward"} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @below {{'func.func' op expects sizes that are not zero, not 'tensor<0x4xf32>'}}
func.func private @body(%x: tensor<0x4xf32>) attributes {tfm.body = "forward"} {
  return
}

// -----

// expected-error @below {{'func.func' op expects ranked tensors in a body, not 'f32'}}
func.func private @body(%x: f32) attributes {tfm.body = "forward"} {
  return
}

// -----

// expected-error @below {{'func.func' op expects elements that are integers or floats, not 'index'}}
func.func private @body(%x: tensor<4xindex>) attributes {tfm.body = "forward"} {
  return
}

// -----

// expected-error @below {{'func.func' op expects tfm.inplace of result 0 to name an argument of type 'tensor<4xf32>', not argument 1}}
func.func private @body(%x: tensor<4xf32>) -> (tensor<4xf32> {tfm.inplace = 1 : i64}) attributes {tfm.body = "forward"} {
  return %x : tensor<4xf32>
}

// -----

func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32>
func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'func.call' op is not supported in a body}}
  %0 = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @body(%x: tensor<2x4x8xf64>) -> tensor<2x4x8xf64> attributes {tfm.body = "forward"} {
  // expected-error @below {{'tfm.attention' op is supported in f32 and bf16 by the host target, not in 'f64'}}
  %0, %1 = tfm.attention %x, %x, %x {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf64>, tensor<2x4x8xf64>, tensor<2x4x8xf64>) -> (tensor<2x4x8xf64>, tensor<2x2x4xf64>)
  return %0 : tensor<2x4x8xf64>
}

// -----

func.func private @body(%x: tensor<4xbf16>) -> tensor<4xi16> attributes {tfm.body = "forward"} {
  // expected-error @below {{'arith.bitcast' op is not supported on 'i16' by the host target; cast through f32}}
  %0 = arith.bitcast %x : tensor<4xbf16> to tensor<4xi16>
  return %0 : tensor<4xi16>
}

// -----

func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'tensor.cast' op is not supported by the host target}}
  %0 = tensor.cast %x : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @body(%x: tensor<?xf32>) -> (tensor<f64>, tensor<?xf32>) attributes {tfm.body = "norm"} {
  // expected-error @below {{'arith.mulf' op needs memory of a size that is known at run time only; a flat body keeps nothing but its results}}
  %0 = arith.mulf %x, %x : tensor<?xf32>
  %1 = tfm.sum_of_squares %0 : (tensor<?xf32>) -> tensor<f64>
  return %1, %x : tensor<f64>, tensor<?xf32>
}

// -----

func.func private @body() -> tensor<2xf32> attributes {tfm.body = "forward"} {
  // expected-error @below {{'arith.constant' op expects dense elements or a resource of 8 bytes}}
  %0 = arith.constant dense_resource<missing> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
