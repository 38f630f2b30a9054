// RUN: %drover-opt --tfm-raise-masks --canonicalize --split-input-file %s | FileCheck %s

#hidden = affine_map<()[s0, s1] -> (s0, s1, 8)>
#ids = affine_map<()[s0, s1] -> (s0, s1)>
#row = affine_map<()[s0, s1] -> (1, 1, s1, 1)>
#column = affine_map<()[s0, s1] -> (1, 1, 1, s1)>
#square = affine_map<()[s0, s1] -> (1, 1, s1, s1)>
#full = affine_map<()[s0, s1] -> (s0, 1, s1, s1)>
#keys = affine_map<()[s0, s1] -> (s0, 1, 1, s1)>
module attributes {tfm.symbols = ["batch", "seq"]} {
  // j <= i and not further back than 70, longer than most lengths that are tried.
  // CHECK-LABEL: @causal_window(
  // CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} causal top_left {{{.*}}window = 70 : i64}
  func.func @causal_window(%x: tensor<?x?x8xf32> {tfm.shape = #hidden}) -> tensor<?x?x8xf32> {
    %window = arith.constant dense<70> : tensor<1x1x1x1xi64>
    %i = tfm.iota {axis = 2 : i64, shape = #row} : tensor<1x1x?x1xi64>
    %j = tfm.iota {axis = 3 : i64, shape = #column} : tensor<1x1x1x?xi64>
    %ib = tfm.broadcast %i {shape = #square} : tensor<1x1x?x1xi64> -> tensor<1x1x?x?xi64>
    %jb = tfm.broadcast %j {shape = #square} : tensor<1x1x1x?xi64> -> tensor<1x1x?x?xi64>
    %wb = tfm.broadcast %window {shape = #square} : tensor<1x1x1x1xi64> -> tensor<1x1x?x?xi64>
    %past = arith.cmpi sle, %jb, %ib : tensor<1x1x?x?xi64>
    %distance = arith.subi %ib, %jb : tensor<1x1x?x?xi64>
    %near = arith.cmpi slt, %distance, %wb : tensor<1x1x?x?xi64>
    %both = arith.andi %past, %near : tensor<1x1x?x?xi1>
    %o, %l = tfm.attention %x, %x, %x mask %both {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<1x1x?x?xi1>) -> (tensor<?x?x8xf32>, tensor<?x2x?xf32>)
    return %o : tensor<?x?x8xf32>
  }

  // A window of 4096 is beyond all lengths: found by putting small numbers in its place.
  // CHECK-LABEL: @large_window(
  // CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} causal top_left {{{.*}}window = 4097 : i64}
  func.func @large_window(%x: tensor<?x?x8xf32> {tfm.shape = #hidden}) -> tensor<?x?x8xf32> {
    %window = arith.constant dense<4096> : tensor<1x1x1x1xi64>
    %i = tfm.iota {axis = 2 : i64, shape = #row} : tensor<1x1x?x1xi64>
    %j = tfm.iota {axis = 3 : i64, shape = #column} : tensor<1x1x1x?xi64>
    %ib = tfm.broadcast %i {shape = #square} : tensor<1x1x?x1xi64> -> tensor<1x1x?x?xi64>
    %jb = tfm.broadcast %j {shape = #square} : tensor<1x1x1x?xi64> -> tensor<1x1x?x?xi64>
    %wb = tfm.broadcast %window {shape = #square} : tensor<1x1x1x1xi64> -> tensor<1x1x?x?xi64>
    %past = arith.cmpi sle, %jb, %ib : tensor<1x1x?x?xi64>
    %distance = arith.subi %ib, %jb : tensor<1x1x?x?xi64>
    %near = arith.cmpi sle, %distance, %wb : tensor<1x1x?x?xi64>
    %both = arith.andi %past, %near : tensor<1x1x?x?xi1>
    %o, %l = tfm.attention %x, %x, %x mask %both {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<1x1x?x?xi1>) -> (tensor<?x?x8xf32>, tensor<?x2x?xf32>)
    return %o : tensor<?x?x8xf32>
  }

  // The padding of attention_mask, added as the lowest finite number, without a causal part: an export whose
  // causal mask got lost stays without one.
  // CHECK-LABEL: @padding_only(
  // CHECK-SAME: %{{[^:]*}}: tensor<?x?x8xf32> {{.*}}, %[[M:[^:]*]]: tensor<?x?xi64>
  // CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} key_mask %[[M]] {num_heads = 2 : i64
  func.func @padding_only(%x: tensor<?x?x8xf32> {tfm.shape = #hidden},
                          %m: tensor<?x?xi64> {tfm.input = "attention_mask", tfm.shape = #ids}) -> tensor<?x?x8xf32> {
    %lowest = arith.constant dense<-3.40282347E+38> : tensor<1x1x1x1xf32>
    %one = arith.constant dense<1.0> : tensor<1x1x1x1xf32>
    %0 = tfm.reshape %m {shape = #keys} : tensor<?x?xi64> -> tensor<?x1x1x?xi64>
    %1 = arith.sitofp %0 : tensor<?x1x1x?xi64> to tensor<?x1x1x?xf32>
    %2 = tfm.broadcast %one {shape = #keys} : tensor<1x1x1x1xf32> -> tensor<?x1x1x?xf32>
    %3 = arith.subf %2, %1 : tensor<?x1x1x?xf32>
    %4 = tfm.broadcast %lowest {shape = #keys} : tensor<1x1x1x1xf32> -> tensor<?x1x1x?xf32>
    %5 = arith.mulf %3, %4 : tensor<?x1x1x?xf32>
    %o, %l = tfm.attention %x, %x, %x mask %5 {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x1x?xf32>) -> (tensor<?x?x8xf32>, tensor<?x2x?xf32>)
    return %o : tensor<?x?x8xf32>
  }

  // Slopes of ALiBi, written relative to the query: a constant of the row more, which softmax does not see.
  // CHECK-LABEL: @alibi(
  // CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} causal top_left {alibi_slopes = array<f32: 6.250000e-02, 3.906250e-03>
  func.func @alibi(%x: tensor<?x?x8xf32> {tfm.shape = #hidden}) -> tensor<?x?x8xf32> {
    %slopes = arith.constant dense<[[[[6.25e-2]], [[3.90625e-3]]]]> : tensor<1x2x1x1xf32>
    %none = arith.constant dense<0xFF800000> : tensor<1x1x1x1xf32>
    %i = tfm.iota {axis = 2 : i64, shape = #row} : tensor<1x1x?x1xi64>
    %j = tfm.iota {axis = 3 : i64, shape = #column} : tensor<1x1x1x?xi64>
    %ib = tfm.broadcast %i {shape = #square} : tensor<1x1x?x1xi64> -> tensor<1x1x?x?xi64>
    %jb = tfm.broadcast %j {shape = #square} : tensor<1x1x1x?xi64> -> tensor<1x1x?x?xi64>
    %d = arith.subi %jb, %ib : tensor<1x1x?x?xi64>
    %f = arith.sitofp %d : tensor<1x1x?x?xi64> to tensor<1x1x?x?xf32>
    %f2 = tfm.broadcast %f {shape = affine_map<()[s0, s1] -> (1, 2, s1, s1)>} : tensor<1x1x?x?xf32> -> tensor<1x2x?x?xf32>
    %s2 = tfm.broadcast %slopes {shape = affine_map<()[s0, s1] -> (1, 2, s1, s1)>} : tensor<1x2x1x1xf32> -> tensor<1x2x?x?xf32>
    %n2 = tfm.broadcast %none {shape = affine_map<()[s0, s1] -> (1, 2, s1, s1)>} : tensor<1x1x1x1xf32> -> tensor<1x2x?x?xf32>
    %past = arith.cmpi sle, %jb, %ib : tensor<1x1x?x?xi64>
    %p2 = tfm.broadcast %past {shape = affine_map<()[s0, s1] -> (1, 2, s1, s1)>} : tensor<1x1x?x?xi1> -> tensor<1x2x?x?xi1>
    %bias = arith.mulf %f2, %s2 : tensor<1x2x?x?xf32>
    %mask = arith.select %p2, %bias, %n2 : tensor<1x2x?x?xi1>, tensor<1x2x?x?xf32>
    %o, %l = tfm.attention %x, %x, %x mask %mask {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<1x2x?x?xf32>) -> (tensor<?x?x8xf32>, tensor<?x2x?xf32>)
    return %o : tensor<?x?x8xf32>
  }

  // j <= i up to length 100 and all keys from there on: not causal at every size.
  // CHECK-LABEL: @causal_up_to_a_length(
  // CHECK: tfm.attention {{.*}} mask
  // CHECK-NOT: causal
  // CHECK: return
  func.func @causal_up_to_a_length(%x: tensor<?x?x8xf32> {tfm.shape = #hidden}) -> tensor<?x?x8xf32> {
    %limit = arith.constant dense<100> : tensor<1x1x1x1xi64>
    %i = tfm.iota {axis = 2 : i64, shape = #row} : tensor<1x1x?x1xi64>
    %j = tfm.iota {axis = 3 : i64, shape = #column} : tensor<1x1x1x?xi64>
    %size = tfm.size {value = affine_map<()[s0, s1] -> (s1)>} : tensor<i64>
    %ib = tfm.broadcast %i {shape = #square} : tensor<1x1x?x1xi64> -> tensor<1x1x?x?xi64>
    %jb = tfm.broadcast %j {shape = #square} : tensor<1x1x1x?xi64> -> tensor<1x1x?x?xi64>
    %sb = tfm.broadcast %size {shape = #square} : tensor<i64> -> tensor<1x1x?x?xi64>
    %lb = tfm.broadcast %limit {shape = #square} : tensor<1x1x1x1xi64> -> tensor<1x1x?x?xi64>
    %past = arith.cmpi sle, %jb, %ib : tensor<1x1x?x?xi64>
    %long = arith.cmpi sgt, %sb, %lb : tensor<1x1x?x?xi64>
    %any = arith.ori %past, %long : tensor<1x1x?x?xi1>
    %o, %l = tfm.attention %x, %x, %x mask %any {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<1x1x?x?xi1>) -> (tensor<?x?x8xf32>, tensor<?x2x?xf32>)
    return %o : tensor<?x?x8xf32>
  }
}

// -----

// A constant mask at one size: all allowed, causal, causal but for one element.
// CHECK-LABEL: @constants(
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {num_heads
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} causal top_left {num_heads
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} mask
func.func @constants(%x: tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>) {
  %all = arith.constant dense<0.0> : tensor<1x1x3x3xf32>
  %causal = arith.constant dense<[[[[0.0, -1.0e4, -1.0e4], [0.0, 0.0, -1.0e4], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %holed = arith.constant dense<[[[[0.0, -1.0e4, -1.0e4], [0.0, 0.0, -1.0e4], [0.0, -1.0e4, 0.0]]]]> : tensor<1x1x3x3xf32>
  %a, %l0 = tfm.attention %x, %x, %x mask %all {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  %b, %l1 = tfm.attention %x, %x, %x mask %causal {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  %c, %l2 = tfm.attention %x, %x, %x mask %holed {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  return %a, %b, %c : tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>
}

// -----

// A mask made of data stays an operand.
// CHECK-LABEL: @data(
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} mask
func.func @data(%x: tensor<1x3x4xf32>, %m: tensor<1x1x3x3xf32>) -> tensor<1x3x4xf32> {
  %a, %l = tfm.attention %x, %x, %x mask %m {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  return %a : tensor<1x3x4xf32>
}
