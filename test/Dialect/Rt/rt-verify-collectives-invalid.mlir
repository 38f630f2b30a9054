// RUN: %drover-opt %s --split-input-file --verify-diagnostics --rt-verify-collectives

// C1
func.func private @nested(%x: memref<8xf32>, %y: memref<16xf32>, %call: !rt.call) attributes {rt.body} {
  %true = arith.constant true
  scf.if %true {
    // expected-error @below {{'rt.collective_start' op expects to stand in the block of its body}}
    rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
      : memref<8xf32>, memref<16xf32>
  }
  return
}

// -----

// C2
func.func private @taken(%x: memref<8xf32>, %y: memref<16xf32>, %z: memref<16xf32>, %call: !rt.call) attributes {rt.body} {
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  // expected-error @below {{'rt.collective_start' op expects slot 0 to be free, its collective is not waited for}}
  rt.collective_start %call all_gather tp slot 0 %x into %z {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  return
}

// -----

// C2
func.func private @nothing_to_wait_for(%call: !rt.call) attributes {rt.body} {
  // expected-error @below {{'rt.collective_wait' op expects a collective in flight in slot 3}}
  rt.collective_wait %call slot 3
  return
}

// -----

// C2
func.func private @never_waited_for(%x: memref<8xf32>, %y: memref<16xf32>, %call: !rt.call) attributes {rt.body} {
  // expected-error @below {{'rt.collective_start' op expects a wait for slot 1}}
  rt.collective_start %call all_gather tp slot 1 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  return
}

// -----

// C3
// expected-error @below {{'func.func' op starts 1 collectives, 'drover.collectives' has 0}}
func.func private @unlisted(%x: memref<8xf32>, %y: memref<16xf32>, %call: !rt.call) attributes {rt.body} {
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  rt.collective_wait %call slot 0
  return
}

// -----

// C3
func.func private @another(%x: memref<8xf32>, %y: memref<16xf32>, %call: !rt.call)
    attributes {rt.body, drover.collectives = [{bytes = 64 : i64, communicator = 4 : i64, dtype = f32, kind = "all_gather", reduction = -1 : i64}]} {
  // expected-error @below {{'rt.collective_start' op is collective 0 of the body, {bytes = 64 : i64, communicator = 1 : i64}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  rt.collective_wait %call slot 0
  return
}

// -----

// C4: the result is read through another view of the same memory.
func.func private @reads_result(%x: memref<4x4xf32>, %z: memref<4x4xf32>, %workspace: memref<256xi8>, %call: !rt.call) attributes {rt.body} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %gathered = memref.view %workspace[%c0][] : memref<256xi8> to memref<8x4xf32>
  %second = memref.view %workspace[%c64][] : memref<256xi8> to memref<4x4xf32>
  // expected-note @below {{it is started here}}
  rt.collective_start %call all_gather tp slot 0 %x into %gathered {inner = 4 : i64, local = 4 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<4x4xf32>, memref<8x4xf32>
  // expected-error @below {{'rt.matmul' op reads the result of the collective in flight in slot 0}}
  rt.matmul %call %second, %x into %z overwrite : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
  rt.collective_wait %call slot 0
  return
}

// -----

// C4: reading what is sent is fine, writing it is not; beside the result there is room.
func.func private @store(%begin: index, %end: index, %in: memref<4x4xf32>, %out: memref<4x4xf32>) attributes {rt.kernel} {
  %0 = memref.load %in[%begin, %begin] : memref<4x4xf32>
  memref.store %0, %out[%begin, %begin] : memref<4x4xf32>
  return
}
func.func private @writes_operand(%x: memref<4x4xf32>, %workspace: memref<256xi8>, %call: !rt.call) attributes {rt.body} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %gathered = memref.view %workspace[%c0][] : memref<256xi8> to memref<8x4xf32>
  %beside = memref.view %workspace[%c128][] : memref<256xi8> to memref<4x4xf32>
  // expected-note @below {{it is started here}}
  rt.collective_start %call all_gather tp slot 0 %x into %gathered {inner = 4 : i64, local = 4 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<4x4xf32>, memref<8x4xf32>
  rt.launch %call @store count %c1 grain 1 (%x, %beside) : memref<4x4xf32>, memref<4x4xf32>
  // expected-error @below {{'rt.launch' op writes the operand of the collective in flight in slot 0}}
  rt.launch %call @store count %c1 grain 1 (%beside, %x) : memref<4x4xf32>, memref<4x4xf32>
  rt.collective_wait %call slot 0
  return
}

// -----

// C4, inside regions, where a load of what is sent is fine.
func.func private @loop_writes_result(%x: memref<8xf32>, %y: memref<16xf32>, %call: !rt.call) attributes {rt.body} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-note @below {{it is started here}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %sent = memref.load %x[%i] : memref<8xf32>
    // expected-error @below {{'memref.store' op writes the result of the collective in flight in slot 0}}
    memref.store %sent, %y[%i] : memref<16xf32>
  }
  rt.collective_wait %call slot 0
  return
}

// -----

// C4: of a buffer that may be one or the other, and of one whose size is not known.
func.func private @either(%x: memref<8xf32>, %y: memref<16xf32>, %z: memref<16xf32>, %b: i1, %call: !rt.call) attributes {rt.body} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %either = arith.select %b, %y, %z : memref<16xf32>
  // expected-note @below {{it is started here}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  // expected-error @below {{'memref.store' op writes the result of the collective in flight in slot 0}}
  memref.store %one, %either[%c0] : memref<16xf32>
  rt.collective_wait %call slot 0
  return
}

// -----

func.func private @of_any_size(%x: memref<8xf32>, %y: memref<16xf32>, %z: memref<?xf32>, %call: !rt.call) attributes {rt.body} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %all = memref.cast %y : memref<16xf32> to memref<?xf32>
  // expected-note @below {{it is started here}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64}
    : memref<8xf32>, memref<16xf32>
  memref.store %one, %z[%c0] : memref<?xf32>
  // expected-error @below {{'memref.store' op writes the result of the collective in flight in slot 0}}
  memref.store %one, %all[%c0] : memref<?xf32>
  rt.collective_wait %call slot 0
  return
}
