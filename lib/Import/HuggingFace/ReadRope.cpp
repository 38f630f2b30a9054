//===- ReadRope.cpp - rotary settings of a config.json ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Both spellings: `rope_parameters` (transformers 5) and `rope_theta` with `rope_scaling`. Where a file says a thing
// twice, it must be the same thing; what this model's code in transformers does not read is refused.
#include "Decoder.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::huggingface;

namespace {

class RopeReader {
public:
  RopeReader(Config &config, const RopeKeys &keys)
      : config(config), keys(keys), parameters(config.nested("rope_parameters")),
        scaling(config.nested("rope_scaling")), settings(parameters ? parameters : scaling),
        name(parameters ? "rope_parameters" : "rope_scaling") {}

  void read(Decoder &decoder, MLIRContext *context);

private:
  std::string place(StringRef key) const;
  double field(StringRef key, std::optional<double> fallback);
  double fieldOrOutside(StringRef key, StringRef outside, double fallback);
  double originalLength();
  void holdAgainst(StringRef usual, StringRef own, double value);
  void checkSpellings();
  void checkKeys();
  std::string kind();

  Config &config;
  const RopeKeys &keys;
  const llvm::json::Object *parameters, *scaling, *settings;
  StringRef name; // of the settings
};

/// Where `key` stands within the settings, for errors.
std::string RopeReader::place(StringRef key) const {
  std::string nested = (name + "/" + key).str();
  return settings && settings->get(key) ? nested : settings ? name.str() : key.str();
}

double RopeReader::field(StringRef key, std::optional<double> fallback) {
  const llvm::json::Value *value = settings ? settings->get(key) : nullptr;
  if (value && value->getAsNumber() && std::isfinite(*value->getAsNumber()))
    return *value->getAsNumber();
  if (!fallback || value)
    config.error(place(key), "config expects '" + key + "' of the rope settings to be a number");
  return fallback.value_or(1);
}

/// What the settings say, else what stands outside of them under a name of its own.
double RopeReader::fieldOrOutside(StringRef key, StringRef outside, double fallback) {
  double value = config.number(outside, fallback), inside = field(key, value);
  if (config.has(outside) && inside != value)
    config.error(outside,
                 "config has '" + outside + "' " + textOf(value) + " but '" + name + "' has " + textOf(inside));
  return inside;
}

/// A family with keys of its own does not read the usual ones: Hugging Face writes both where they say the same.
void RopeReader::holdAgainst(StringRef usual, StringRef own, double value) {
  double other = own == usual ? value : config.number(usual, value);
  if (other != value)
    config.error(usual, "config has '" + usual + "' " + textOf(other) + ", which this model reads from '" + own +
                            "' and 'rope_parameters': " + textOf(value));
}

/// Both spellings in one file must say the same: transformers takes `rope_scaling` alone where it is not empty, and
/// what that lacks from outside of both.
void RopeReader::checkSpellings() {
  if (!parameters || !scaling || scaling->empty())
    return;
  auto hold = [&](const llvm::json::Object *one, const llvm::json::Object *other, bool mayStandOutside) {
    for (const auto &[key, value] : *one) {
      StringRef field = key == "type" ? StringRef("rope_type") : StringRef(key);
      const llvm::json::Value *same = other->get(field);
      if (!same && field == "rope_type")
        same = other->get("type");
      bool isOutside = mayStandOutside && !same &&
                       ((field == "rope_theta" && config.has(keys.theta)) ||
                        (field == "partial_rotary_factor" && config.has(keys.fraction)));
      if (isOutside || (same && *same == value))
        continue;
      config.error((Twine(one == scaling ? "rope_scaling" : "rope_parameters") + "/" + StringRef(key)).str(),
                   "config has 'rope_scaling' and 'rope_parameters', which differ in '" + field + "'");
    }
  };
  hold(scaling, parameters, false);
  hold(parameters, scaling, true);
}

/// Settings that are not read would be a model's other positions: settings of kinds of layers, multimodal sections.
void RopeReader::checkKeys() {
  constexpr llvm::StringLiteral known[] = {"rope_type",        "type",
                                           "rope_theta",       "partial_rotary_factor",
                                           "factor",           "low_freq_factor",
                                           "high_freq_factor", "original_max_position_embeddings"};
  for (const auto &[key, value] : *settings)
    if (!llvm::is_contained(known, StringRef(key)) && value.kind() != llvm::json::Value::Null)
      return config.error((name + "/" + StringRef(key)).str(), "config has '" + StringRef(key) + "' in '" + name +
                                                                   "', which expects only " +
                                                                   llvm::join(ArrayRef(known), ", "));
}

/// default, linear or llama3; nothing after an error.
std::string RopeReader::kind() {
  for (StringRef key : {"rope_type", "type"})
    if (const llvm::json::Value *value = settings->get(key); value && !value->getAsString() && !value->getAsNull())
      config.error(place(key), "config expects '" + key + "' of the rope settings to be a string");
  StringRef key = settings->getString("rope_type") ? "rope_type" : "type";
  StringRef kind = settings->getString(key).value_or("default");
  if (kind == "default" || (keys.scales && (kind == "linear" || kind == "llama3")))
    return kind.str();
  config.error(place(key), "config has unsupported rope scaling '" + kind + "'; supported " +
                               (keys.scales ? "are default, linear and llama3" : "for this model is default"));
  return "";
}

/// The length before scaling. It may stand outside of the settings, and is the model's own where nothing says it.
double RopeReader::originalLength() {
  constexpr llvm::StringLiteral key = "original_max_position_embeddings";
  std::optional<double> fallback;
  if (config.has("max_position_embeddings"))
    fallback = config.number("max_position_embeddings");
  double length = config.has(key) ? fieldOrOutside(key, key, 1) : field(key, fallback);
  if (!(length >= 1 && length < 0x1p31 && length == std::floor(length)))
    config.error(place(key), "config expects '" + key + "' to be a positive integer below 2^31, not " + textOf(length));
  return length;
}

void RopeReader::read(Decoder &decoder, MLIRContext *context) {
  decoder.theta = fieldOrOutside("rope_theta", keys.theta, 10000.0);
  double fraction = fieldOrOutside("partial_rotary_factor", keys.fraction, keys.fractionDefault);
  holdAgainst("rope_theta", keys.theta, decoder.theta);
  holdAgainst("partial_rotary_factor", keys.fraction, fraction);
  if (!(decoder.theta > 0))
    config.error(settings ? place("rope_theta") : keys.theta.str(),
                 "config expects a positive rope theta, not " + textOf(decoder.theta));
  std::string fractionPlace =
      settings && settings->get("partial_rotary_factor") ? place("partial_rotary_factor") : keys.fraction.str();
  if (!(fraction > 0 && fraction <= 1))
    config.error(fractionPlace, "config expects a partial rotary factor above 0 and up to 1, not " + textOf(fraction));
  if (!keys.isPartial && fraction != 1)
    config.error(fractionPlace, "config has a partial rotary factor of " + textOf(fraction) +
                                    ", which this model's code does not read; expected is 1");
  decoder.rotarySize = static_cast<int64_t>(decoder.headSize * fraction);
  if (decoder.rotarySize < 2 || decoder.rotarySize % 2)
    config.error("head_dim",
                 "config expects an even number of rotary channels a head, not " + Twine(decoder.rotarySize));
  checkSpellings();
  if (!settings)
    return;

  std::string type = kind();
  checkKeys();
  if (type.empty() || type == "default")
    return;
  double factor = field("factor", {}), low = 1, high = 4, original = 1;
  if (type == "llama3") {
    low = field("low_freq_factor", {});
    high = field("high_freq_factor", {});
    original = originalLength();
  }
  if (config.failed())
    return;
  decoder.scaling =
      tfm::RopeScalingAttr::getChecked([&] { return emitError(config.locOf(name)); }, context, StringRef(type),
                                       APFloat(factor), APFloat(low), APFloat(high), static_cast<int64_t>(original));
  if (!decoder.scaling)
    config.fail();
}

} // namespace

void drover::huggingface::readRope(Config &config, Decoder &decoder, MLIRContext *context, const RopeKeys &keys) {
  RopeReader(config, keys).read(decoder, context);
}
