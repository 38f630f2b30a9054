// RUN: %drover-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'tfm.symbols' expects an array of names, not [3]}}
module attributes {tfm.symbols = [3]} {}

// -----

// expected-error@+1 {{'tfm.input' expects a name, not 3}}
func.func @input(%x: tensor<2xf32> {tfm.input = 3 : i64}) { return }

// -----

// expected-error@+1 {{'tfm.parameter' expects a name, not ""}}
func.func @parameter(%x: tensor<2xf32> {tfm.parameter = ""}) { return }

// -----

// expected-error@+1 {{'tfm.parameter' expects sizes of 1 and more, not 'tensor<0x64xf32>'}}
func.func @sizes(%x: tensor<0x64xf32> {tfm.parameter = "x"}) { return }

// -----

// expected-error@+1 {{'tfm.accumulator' expects a name, not unit}}
func.func @accumulator(%x: tensor<2xf32> {tfm.accumulator}) { return }

// -----

// expected-error@+1 {{'tfm.aliases' expects an array of names, not "a"}}
func.func @aliases(%x: tensor<2xf32> {tfm.aliases = "a"}) { return }

// -----

// expected-error@+1 {{'tfm.seed' expects no value, not 1}}
func.func @seed(%x: tensor<f32> {tfm.seed = 1 : i64}) { return }

// -----

// expected-error@+1 {{'tfm.microbatch' expects no value, not "a"}}
func.func @microbatch() attributes {tfm.microbatch = "a"} { return }

// -----

func.func private @layer_body()
func.func @layer() {
  // expected-error@+1 {{'tfm.layer' expects a number counted from 0, not -1}}
  call @layer_body() {tfm.layer = -1 : i64} : () -> ()
  return
}

// -----

module attributes {tfm.symbols = ["s"]} {
  // expected-error@+1 {{'tfm.shape' expects an affine map without dimensions and with 2 results, not}}
  func.func @shape(%x: tensor<?x?xf32> {tfm.shape = affine_map<()[s0] -> (s0)>}) { return }
}

// -----

module attributes {tfm.symbols = ["s"]} {
  // expected-error@+1 {{'tfm.shape' has 2 symbols where 'tfm.symbols' of the module names 1}}
  func.func @shape_symbols(%x: tensor<?x?xf32> {tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>}) { return }
}

// -----

// expected-error@+1 {{'tfm.source' expects #tfm.source, not "w.bin"}}
func.func @source(%x: tensor<2xf32> {tfm.source = "w.bin"}) { return }

// -----

// expected-error@+1 {{'tfm.source' has 12 bytes where 'tensor<2xf32>' in 'f32' takes 8}}
func.func @source_bytes(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "w", offset = 0, bytes = 12, type = f32, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' expects a parameter of less than 2^63 bytes, not 'tensor<4611686018427387904x4xf32>'}}
func.func @source_absurd(%x: tensor<4611686018427387904x4xf32> {tfm.source = #tfm.source<file = "w", offset = 0, bytes = 8, type = f32, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' is transposed, which expects a parameter of rank 2, not 'tensor<2xf32>'}}
func.func @source_transposed(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "w", offset = 0, bytes = 8, type = f32, transposed = true, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' expects a parameter of static shape, not 'tensor<?xf32>'}}
func.func @source_dynamic(%x: tensor<?xf32> {tfm.source = #tfm.source<file = "w", offset = 0, bytes = 8, type = f32, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' expects an element type of integers or floats, not 'index'}}
func.func @source_index(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "w", offset = 0, bytes = 8, type = index, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.output' expects a name, not 1}}
func.func @output(%x: tensor<2xf32>) -> (tensor<2xf32> {tfm.output = 1 : i64}) { return %x : tensor<2xf32> }

// -----

// expected-error@+1 {{'tfm.parameter' expects distinct names, "w" is that of argument 2 and of one before it}}
func.func @parameter_twice(%x: tensor<2xf32> {tfm.input = "w"}, %w: tensor<2xf32> {tfm.parameter = "w"}, %v: tensor<2xf32> {tfm.parameter = "w"}) { return }

// -----

// expected-error@+1 {{'tfm.input' expects distinct names, "x" is that of argument 1 and of one before it}}
func.func @input_twice(%x: tensor<2xf32> {tfm.input = "x"}, %y: tensor<2xf32> {tfm.input = "x"}) { return }

// -----

func.func @source_at_the_end(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "w", offset = 9223372036854775799, bytes = 8, type = f32, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' expects a range that ends before byte 2^63, not offset 9223372036854775800}}
func.func @source_offset(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "w", offset = 9223372036854775800, bytes = 8, type = f32, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' expects a path within the model's folder, not "data/../../w"}}
func.func @source_outside(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "data/../../w", offset = 0, bytes = 8, type = f32, transposed = false, plus = 0.0>}) { return }

// -----

// expected-error@+1 {{'tfm.source' expects a path within the model's folder, not "/etc/w"}}
func.func @source_absolute(%x: tensor<2xf32> {tfm.source = #tfm.source<file = "/etc/w", offset = 0, bytes = 8, type = f32, transposed = false, plus = 0.0>}) { return }
