// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_value_of_another_type() {
  // expected-error@+1 {{expects a value of 'f32', not 'f64'}}
  %0 = tfm.fill {value = 0.0 : f64} : tensor<2xf32>
  return
}

// -----

func.func @c2_dynamic_without_shape() {
  // expected-error@+1 {{expects 'shape' where a result size is dynamic}}
  %0 = tfm.fill {value = 0.0 : f32} : tensor<?xf32>
  return
}
