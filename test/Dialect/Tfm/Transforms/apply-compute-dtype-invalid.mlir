// RUN: %drover-opt %s --verify-diagnostics --tfm-apply-compute-dtype=dtype=f8

// expected-error@+1 {{expects dtype f32, bf16 or f64, not 'f8'}}
module {
  func.func @model() {
    return
  }
}
