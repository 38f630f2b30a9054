// RUN: not %drover-opt %s --convert-tfm-to-rt="target=cuda attention=fast" 2>&1 | FileCheck %s
// CHECK: error: attention is generated, wgmma or cudnn, not 'fast'
module {}
