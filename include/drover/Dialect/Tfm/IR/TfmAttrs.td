#ifndef DROVER_DIALECT_TFM_IR_TFMATTRS
#define DROVER_DIALECT_TFM_IR_TFMATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "drover/Dialect/Tfm/IR/TfmDialect.td"

class Tfm_Attr<string name, string mnemonicName> : AttrDef<Tfm_Dialect, name> {
  let mnemonic = mnemonicName;
}

class Tfm_DoubleParameter<string text = ""> : APFloatParameter<text> {
  let parser = "::drover::tfm::detail::parseDouble($_parser)";
  let printer = "$_printer.printFloat($_self)";
}

class Tfm_BoolParameter<string text = ""> : AttrOrTypeParameter<"bool", text> {
  let parser = "::drover::tfm::detail::parseBool($_parser)";
  let printer = "$_printer << ($_self ? \"true\" : \"false\")";
}

def Tfm_CausalKind : I32EnumAttr<"CausalKind", "how a causal mask is aligned", [
    I32EnumAttrCase<"None", 0, "none">,
    // query i sees keys j <= i
    I32EnumAttrCase<"TopLeft", 1, "top_left">,
    // query i sees keys j <= i + (keys - queries)
    I32EnumAttrCase<"BottomRight", 2, "bottom_right">
  ]> {
  let cppNamespace = "::drover::tfm";
}

def Tfm_GeluKind : I32EnumAttr<"GeluKind", "formula of GELU", [
    // 0.5 x (1 + erf(x / sqrt 2))
    I32EnumAttrCase<"Erf", 0, "erf">,
    // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    I32EnumAttrCase<"Tanh", 1, "tanh">
  ]> {
  let cppNamespace = "::drover::tfm";
}

def Tfm_ReduceKind : I32EnumAttr<"ReduceKind", "reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">,
    I32EnumAttrCase<"Mean", 3, "mean">,
    I32EnumAttrCase<"Prod", 4, "prod">
  ]> {
  let cppNamespace = "::drover::tfm";
}

def Tfm_SourceAttr : Tfm_Attr<"Source", "source"> {
  let summary = "where the values of a parameter are";
  let description = [{
    A range of bytes of a file, little-endian and row-major, with what the exporter did to the
    parameter: `transposed` (rank 2: stored with its two dimensions exchanged) and `plus` (this was
    added to every value). Reading undoes both, so that names, orientation and values are the model's.

    Example: `#tfm.source<file = "model.onnx", offset = 4096, bytes = 16384, type = f32, transposed = true, plus = 0.0>`
  }];
  let parameters = (ins
    StringRefParameter<"path, relative to the model's folder">:$file,
    "uint64_t":$offset,
    "uint64_t":$bytes,
    "::mlir::Type":$type,
    Tfm_BoolParameter<>:$transposed,
    Tfm_DoubleParameter<>:$plus
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

def Tfm_RopeScalingAttr : Tfm_Attr<"RopeScaling", "rope_scaling"> {
  let summary = "how RoPE frequencies are scaled";
  let description = [{
    `kind` is "linear" (inv_freq / factor) or "llama3" (Llama 3.1's smooth interpolation between
    factor and 1 by wavelength: low_freq_factor, high_freq_factor, original_max_position; Hugging Face
    transformers, modeling_rope_utils).

    Example: `#tfm.rope_scaling<kind = "llama3", factor = 8.0, low = 1.0, high = 4.0, original = 8192>`
  }];
  let parameters = (ins
    StringRefParameter<"linear or llama3">:$kind,
    Tfm_DoubleParameter<>:$factor,
    Tfm_DoubleParameter<>:$low,
    Tfm_DoubleParameter<>:$high,
    "int64_t":$original
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // DROVER_DIALECT_TFM_IR_TFMATTRS
