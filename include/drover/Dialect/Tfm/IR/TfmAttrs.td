#ifndef DROVER_DIALECT_TFM_IR_TFMATTRS
#define DROVER_DIALECT_TFM_IR_TFMATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "drover/Dialect/Tfm/IR/TfmDialect.td"

class Tfm_Attr<string name, string mnemonicName, list<Trait> traits = []> : AttrDef<Tfm_Dialect, name, traits> {
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

def Tfm_SegmentsAttr : Tfm_Attr<"Segments", "segments"> {
  let summary = "the parts of a padded dimension";
  let description = [{
    A list of [groups, valid, padded, total]: `groups` groups of `valid` elements, each padded to
    `padded`, and groups of padding up to `total`. A rank's part of the dimension is, segment after
    segment, its contiguous share of total * padded elements (docs/distributions.md, Padding).

    Example: `#tfm.segments<[257, 1, 1, 260]>`
  }];
  let parameters = (ins ArrayRefParameter<"::drover::tfm::PaddedSegment">:$segments);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Sizes of the whole dimension, without and with padding.
    int64_t validSize() const;
    int64_t paddedSize() const;
    bool isPadded() const { return validSize() != paddedSize(); }
    /// The segments in units of `unit` elements; null where it does not divide them, or 64 bits do not hold them.
    SegmentsAttr scaledDown(int64_t unit) const;
    SegmentsAttr scaledUp(int64_t unit) const;
  }];
}

def Tfm_DistAttr : Tfm_Attr<"Dist", "dist", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>
  ]> {
  let summary = "how the ranks of the grid hold a tensor";
  let description = [{
    Per axis sharded (`S` dimension, with `x2` in CP's two chunks), partial (`P`, the reduction and
    the type it must be done in) or varying (`V`); an axis that is not named is replicated. `layout`
    lists the dimensions that are padded or made of several parts (docs/distributions.md).

    Example: `#tfm.dist<tp = S1, cp = S1x2>`, `#tfm.dist<tp = P sum bf16>`, `#tfm.dist<tp = S0, layout = {0 : [257, 1, 1, 260]}>`
  }];
  let parameters = (ins ArrayRefParameter<"::drover::tfm::AxisState">:$states,
                        ArrayRefParameter<"::drover::tfm::DimLayout">:$layouts);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // DROVER_DIALECT_TFM_IR_TFMATTRS
