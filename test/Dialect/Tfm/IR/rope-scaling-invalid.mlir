// RUN: %drover-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{rope_scaling expects a positive factor, not 0}}
func.func @factor_of_zero() attributes {s = #tfm.rope_scaling<kind = "linear", factor = 0.0, low = 1.0, high = 4.0, original = 64>} {
  return
}

// -----

// expected-error@+1 {{rope_scaling expects 0 < low < high and a positive original length, not low 4}}
func.func @low_not_below_high() attributes {s = #tfm.rope_scaling<kind = "llama3", factor = 2.0, low = 4.0, high = 4.0, original = 64>} {
  return
}

// -----

// expected-error@+1 {{rope_scaling expects 0 < low < high and a positive original length, not low 1}}
func.func @no_original_length() attributes {s = #tfm.rope_scaling<kind = "llama3", factor = 2.0, low = 1.0, high = 4.0, original = 0>} {
  return
}

// -----

// expected-error@+1 {{rope_scaling expects a positive factor, not}}
func.func @infinite_factor() attributes {s = #tfm.rope_scaling<kind = "linear", factor = 0x7FF0000000000000, low = 1.0, high = 4.0, original = 64>} {
  return
}
