// One error has all that no kernel computes.
// RUN: not %drover compile %s --task=forward --seq-len=8 --target=cuda --emit=ptx -o %t 2>&1 | FileCheck %s
// CHECK: error: the cuda target has no kernel yet for 'math.atan' (1), 'math.tan' (1)
// CHECK-NOT: error:
module attributes {tfm.symbols = ["batch", "sequence"]} {
  func.func @model(%ids: tensor<?x?xi64> {tfm.input = "input_ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
                   %table: tensor<32x16xf32> {tfm.parameter = "wte.weight"}) -> (tensor<?x?x16xf32> {tfm.output = "hidden"}) {
    %e = tfm.embedding %ids, %table : (tensor<?x?xi64>, tensor<32x16xf32>) -> tensor<?x?x16xf32>
    %a = math.atan %e : tensor<?x?x16xf32>
    %b = math.tan %a : tensor<?x?x16xf32>
    return %b : tensor<?x?x16xf32>
  }
}
