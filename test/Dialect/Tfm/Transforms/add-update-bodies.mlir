// RUN: %drover-opt %s --tfm-add-update-bodies=dtype=bf16 | FileCheck %s
// RUN: %drover-opt %s --tfm-add-update-bodies=optimizer=sgd | FileCheck %s --check-prefix=SGD
// RUN: %drover-opt %s --tfm-add-update-bodies=add-gradients | FileCheck %s --check-prefix=ADD

module {}

// CHECK: func.func private @adamw_update(%[[P:.*]]: tensor<?xf32>, %[[M:.*]]: tensor<?xf32>, %[[V:.*]]: tensor<?xf32>, %[[G:.*]]: tensor<?xf32>, %[[H:.*]]: tensor<8xf32>)
// CHECK-SAME: -> (tensor<?xf32> {tfm.inplace = 0 : i64}, tensor<?xf32> {tfm.inplace = 1 : i64}, tensor<?xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "update"}
// CHECK-NEXT: tfm.adamw %[[P]], %[[M]], %[[V]], %[[G]], %[[H]]
// CHECK: func.func private @sum_of_squares(%{{.*}}: tensor<?xf32>) -> tensor<f64> attributes {tfm.body = "norm"}
// CHECK-NEXT: tfm.sum_of_squares
// CHECK: func.func private @cast_parameters(%{{.*}}: tensor<?xf32>) -> tensor<?xbf16> attributes {tfm.body = "update"}
// CHECK-NEXT: arith.truncf

// SGD: func.func private @sgd_update(%{{.*}}: tensor<?xf32>, %{{.*}}: tensor<?xf32>, %{{.*}}: tensor<8xf32>) -> (tensor<?xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "update"}
// SGD: func.func private @sum_of_squares
// SGD-NOT: cast_parameters
// SGD-NOT: add_gradients

// ADD: func.func private @add_gradients(%[[G:.*]]: tensor<?xf32>, %[[R:.*]]: tensor<?xf32>) -> (tensor<?xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "update"}
// ADD-NEXT: arith.addf %[[G]], %[[R]]
