// RUN: %drover-opt --tfm-raise-rope --canonicalize --tfm-simplify-views --cse --split-input-file %s | FileCheck %s

// Half rotation on [B, heads, S, D], tables from inverse frequencies times positions that count up.
// CHECK-LABEL: @half_rotation(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x?x16xf32>
// CHECK: %[[P:.*]] = tfm.iota {axis = 1 : i64, {{.*}}} : tensor<1x?xi64>
// CHECK: %[[Y:.*]] = tfm.rope %[[X]], %[[P]] {head_size = 8 : i64, rotary_dim = 8 : i64, theta = 5.000000e+05 : f64}
// CHECK-NEXT: return %[[Y]]
#bsh = affine_map<()[s0, s1] -> (s0, s1, 16)>
#bshd = affine_map<()[s0, s1] -> (s0, s1, 2, 8)>
#bhsd = affine_map<()[s0, s1] -> (s0, 2, s1, 8)>
#bhsr = affine_map<()[s0, s1] -> (s0, 2, s1, 4)>
#s1 = affine_map<()[s0, s1] -> (1, s1, 1)>
#s4 = affine_map<()[s0, s1] -> (1, s1, 4)>
module attributes {tfm.symbols = ["batch", "seq"]} {
  func.func @half_rotation(%x: tensor<?x?x16xf32> {tfm.shape = #bsh}) -> tensor<?x?x16xf32> {
    %0 = tfm.reshape %x {shape = #bshd} : tensor<?x?x16xf32> -> tensor<?x?x2x8xf32>
    %1 = tfm.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x?x2x8xf32> -> tensor<?x2x?x8xf32>
    %2 = tfm.iota {axis = 1 : i64, shape = #s1} : tensor<1x?x1xi64>
    %3 = arith.sitofp %2 : tensor<1x?x1xi64> to tensor<1x?x1xf32>
    %4 = tfm.broadcast %3 {shape = #s4} : tensor<1x?x1xf32> -> tensor<1x?x4xf32>
    // 500000 ^ -(2c / 8)
    %5 = arith.constant dense<[1.0, 0.037606031, 0.00141421356, 5.31829589E-5]> : tensor<4xf32>
    %6 = tfm.broadcast %5 {shape = #s4} : tensor<4xf32> -> tensor<1x?x4xf32>
    %7 = arith.mulf %4, %6 : tensor<1x?x4xf32>
    %8 = tfm.concat %7, %7 {axis = 2 : i64} : (tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x8xf32>
    %9 = math.cos %8 : tensor<1x?x8xf32>
    %10 = math.sin %8 : tensor<1x?x8xf32>
    %11 = tfm.broadcast %9 {shape = #bhsd} : tensor<1x?x8xf32> -> tensor<?x2x?x8xf32>
    %12 = tfm.broadcast %10 {shape = #bhsd} : tensor<1x?x8xf32> -> tensor<?x2x?x8xf32>
    %13 = tfm.slice %1 {offsets = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>, shape = #bhsr} : tensor<?x2x?x8xf32> -> tensor<?x2x?x4xf32>
    %14 = tfm.slice %1 {offsets = array<i64: 0, 0, 0, 4>, strides = array<i64: 1, 1, 1, 1>, shape = #bhsr} : tensor<?x2x?x8xf32> -> tensor<?x2x?x4xf32>
    %15 = arith.negf %14 : tensor<?x2x?x4xf32>
    %16 = tfm.concat %15, %13 {axis = 3 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
    %17 = arith.mulf %1, %11 : tensor<?x2x?x8xf32>
    %18 = arith.mulf %16, %12 : tensor<?x2x?x8xf32>
    %19 = arith.addf %17, %18 : tensor<?x2x?x8xf32>
    %20 = tfm.transpose %19 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x2x?x8xf32> -> tensor<?x?x2x8xf32>
    %21 = tfm.reshape %20 {shape = #bsh} : tensor<?x?x2x8xf32> -> tensor<?x?x16xf32>
    return %21 : tensor<?x?x16xf32>
  }
}

// -----

// Neighbouring pairs, the first four of eight channels, positions that are an input, halves computed apart
// and stacked; the wavelengths are stretched twofold.
// CHECK-LABEL: @interleaved_partial_linear(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x5x16xf32>, %[[P:[^:]*]]: tensor<2x5xi64>
// CHECK: %[[Y:.*]] = tfm.rope %[[X]], %[[P]] {head_size = 8 : i64, interleaved, rotary_dim = 4 : i64, scaling = #tfm.rope_scaling<kind = "linear", factor = 2.{{0*}}e+00, {{.*}}>, theta = 1.000000e+04 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @interleaved_partial_linear(%x: tensor<2x5x16xf32>, %p: tensor<2x5xi64> {tfm.input = "position_ids"}) -> tensor<2x5x16xf32> {
  %0 = tfm.reshape %x : tensor<2x5x16xf32> -> tensor<2x5x2x8xf32>
  %1 = tfm.slice %0 {offsets = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : tensor<2x5x2x8xf32> -> tensor<2x5x2x4xf32>
  %2 = tfm.slice %0 {offsets = array<i64: 0, 0, 0, 4>, strides = array<i64: 1, 1, 1, 1>} : tensor<2x5x2x8xf32> -> tensor<2x5x2x4xf32>
  %3 = arith.sitofp %p : tensor<2x5xi64> to tensor<2x5xf32>
  %4 = tfm.reshape %3 : tensor<2x5xf32> -> tensor<2x5x1x1xf32>
  %5 = tfm.broadcast %4 : tensor<2x5x1x1xf32> -> tensor<2x5x2x2xf32>
  %6 = arith.constant dense<[0.5, 0.005]> : tensor<2xf32>
  %7 = tfm.broadcast %6 : tensor<2xf32> -> tensor<2x5x2x2xf32>
  %8 = arith.mulf %5, %7 : tensor<2x5x2x2xf32>
  %cos = math.cos %8 : tensor<2x5x2x2xf32>
  %sin = math.sin %8 : tensor<2x5x2x2xf32>
  %a = tfm.slice %1 {offsets = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 2>} : tensor<2x5x2x4xf32> -> tensor<2x5x2x2xf32>
  %b = tfm.slice %1 {offsets = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 2>} : tensor<2x5x2x4xf32> -> tensor<2x5x2x2xf32>
  %ac = arith.mulf %a, %cos : tensor<2x5x2x2xf32>
  %bs = arith.mulf %b, %sin : tensor<2x5x2x2xf32>
  %first = arith.subf %ac, %bs : tensor<2x5x2x2xf32>
  %bc = arith.mulf %b, %cos : tensor<2x5x2x2xf32>
  %as = arith.mulf %a, %sin : tensor<2x5x2x2xf32>
  %second = arith.addf %bc, %as : tensor<2x5x2x2xf32>
  %f = tfm.reshape %first : tensor<2x5x2x2xf32> -> tensor<2x5x2x2x1xf32>
  %s = tfm.reshape %second : tensor<2x5x2x2xf32> -> tensor<2x5x2x2x1xf32>
  %stack = tfm.concat %f, %s {axis = 4 : i64} : (tensor<2x5x2x2x1xf32>, tensor<2x5x2x2x1xf32>) -> tensor<2x5x2x2x2xf32>
  %rotated = tfm.reshape %stack : tensor<2x5x2x2x2xf32> -> tensor<2x5x2x4xf32>
  %joined = tfm.concat %rotated, %2 {axis = 3 : i64} : (tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>) -> tensor<2x5x2x8xf32>
  %y = tfm.reshape %joined : tensor<2x5x2x8xf32> -> tensor<2x5x16xf32>
  return %y : tensor<2x5x16xf32>
}

// -----

// A table of cosines and sines gathered by position; no theta gives these frequencies.
// CHECK-LABEL: @gathered_table(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x6xf32>, %[[P:[^:]*]]: tensor<2x3xi64>
// CHECK: tfm.rope %[[X]], %[[P]] {head_size = 6 : i64, inv_freq = array<f32: {{1.000000e.00|0.999999.*}}, {{0.7.*|0.69999.*}}, {{0.6.*|0.59999.*|6.00.*e-01|5.99.*e-01}}>, rotary_dim = 6 : i64,
func.func @gathered_table(%x: tensor<2x3x6xf32>, %p: tensor<2x3xi64> {tfm.input = "position_ids"}) -> tensor<2x3x6xf32> {
  // cos and sin of p, 0.7 p and 0.6 p, each twice.
  %cos = arith.constant dense<[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
                               [0.540302277, 0.764842212, 0.825335622, 0.540302277, 0.764842212, 0.825335622],
                               [-0.416146845, 0.169967145, 0.362357765, -0.416146845, 0.169967145, 0.362357765],
                               [-0.989992499, -0.504846096, -0.227202088, -0.989992499, -0.504846096, -0.227202088]]> : tensor<4x6xf32>
  %sin = arith.constant dense<[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                               [0.841470957, 0.64421767, 0.564642489, 0.841470957, 0.64421767, 0.564642489],
                               [0.909297407, 0.985449731, 0.932039082, 0.909297407, 0.985449731, 0.932039082],
                               [0.141120002, 0.863209367, 0.973847628, 0.141120002, 0.863209367, 0.973847628]]> : tensor<4x6xf32>
  %c = tfm.gather %cos, %p {axis = 0 : i64} : (tensor<4x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  %s = tfm.gather %sin, %p {axis = 0 : i64} : (tensor<4x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  %0 = tfm.slice %x {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x3x6xf32> -> tensor<2x3x3xf32>
  %1 = tfm.slice %x {offsets = array<i64: 0, 0, 3>, strides = array<i64: 1, 1, 1>} : tensor<2x3x6xf32> -> tensor<2x3x3xf32>
  %2 = arith.negf %1 : tensor<2x3x3xf32>
  %3 = tfm.concat %2, %0 {axis = 2 : i64} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x6xf32>
  %4 = arith.mulf %x, %c : tensor<2x3x6xf32>
  %5 = arith.mulf %3, %s : tensor<2x3x6xf32>
  %6 = arith.addf %4, %5 : tensor<2x3x6xf32>
  return %6 : tensor<2x3x6xf32>
}

// -----

// A sine table of other frequencies than the cosine table is no rotation; neither is one with equal signs.
// CHECK-LABEL: @no_rotation(
// CHECK-NOT: tfm.rope
// CHECK: return
func.func @no_rotation(%x: tensor<1x5x2xf32>) -> (tensor<1x5x2xf32>, tensor<1x5x2xf32>) {
  %0 = tfm.iota {axis = 1 : i64} : tensor<1x5x2xf32>
  %two = arith.constant dense<2.0> : tensor<1x5x2xf32>
  %double = arith.mulf %0, %two : tensor<1x5x2xf32>
  %c = math.cos %0 : tensor<1x5x2xf32>
  %s = math.sin %0 : tensor<1x5x2xf32>
  %s2 = math.sin %double : tensor<1x5x2xf32>
  %a = tfm.slice %x {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<1x5x2xf32> -> tensor<1x5x1xf32>
  %b = tfm.slice %x {offsets = array<i64: 0, 0, 1>, strides = array<i64: 1, 1, 1>} : tensor<1x5x2xf32> -> tensor<1x5x1xf32>
  %n = arith.negf %b : tensor<1x5x1xf32>
  %rotated = tfm.concat %n, %a {axis = 2 : i64} : (tensor<1x5x1xf32>, tensor<1x5x1xf32>) -> tensor<1x5x2xf32>
  %swapped = tfm.concat %b, %a {axis = 2 : i64} : (tensor<1x5x1xf32>, tensor<1x5x1xf32>) -> tensor<1x5x2xf32>
  %1 = arith.mulf %x, %c : tensor<1x5x2xf32>
  %2 = arith.mulf %rotated, %s2 : tensor<1x5x2xf32>
  %3 = arith.addf %1, %2 : tensor<1x5x2xf32>
  %4 = arith.mulf %swapped, %s : tensor<1x5x2xf32>
  %5 = arith.addf %1, %4 : tensor<1x5x2xf32>
  return %3, %5 : tensor<1x5x2xf32>, tensor<1x5x2xf32>
}
