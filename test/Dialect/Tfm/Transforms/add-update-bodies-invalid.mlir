// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-add-update-bodies=optimizer=lion
// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-add-update-bodies="optimizer=lion dtype=f8"

// expected-error@+1 {{expects optimizer adamw or sgd, not 'lion'}}
module {}
