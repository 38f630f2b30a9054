// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_table_of_rank_3(%ids: tensor<3xi64>, %table: tensor<4x2x2xf32>) {
  // expected-error@+1 {{expects a table of rank 2, not [4x2x2]}}
  %0 = tfm.embedding %ids, %table : (tensor<3xi64>, tensor<4x2x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @c2_result_of_another_width(%ids: tensor<3xi64>, %table: tensor<4x2xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x2], not [3x5]}}
  %0 = tfm.embedding %ids, %table : (tensor<3xi64>, tensor<4x2xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_result_of_another_type(%ids: tensor<3xi64>, %table: tensor<4x2xf32>) {
  // expected-error@+1 {{expects table and result to have equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.embedding %ids, %table : (tensor<3xi64>, tensor<4x2xf32>) -> tensor<3x2xbf16>
  return
}

// -----

func.func @float_ids(%ids: tensor<3xf32>, %table: tensor<4x2xf32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor of 32-bit signless integer or 64-bit signless integer values}}
  %0 = tfm.embedding %ids, %table : (tensor<3xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @c4_offset_of_rank_1(%ids: tensor<3xi64>, %table: tensor<4x2xf32>, %o: tensor<1xi64>) {
  // expected-error@+1 {{must be 0D tensor of 64-bit signless integer values, but got 'tensor<1xi64>'}}
  %0 = tfm.embedding %ids, %table offset %o : (tensor<3xi64>, tensor<4x2xf32>, tensor<1xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @c5_constant_id_too_large(%t: tensor<4x5xf32>) {
  %i = arith.constant dense<[[0, 4]]> : tensor<1x2xi64>
  // expected-error@+1 {{expects indices in [0, 4), not 4}}
  %0 = tfm.embedding %i, %t : (tensor<1x2xi64>, tensor<4x5xf32>) -> tensor<1x2x5xf32>
  return
}
