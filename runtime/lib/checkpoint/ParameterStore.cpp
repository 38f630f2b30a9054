//===- ParameterStore.cpp - the parameters of a rank ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/philox.h"
#include "drover/rt/safetensors.h"
#include "drover/rt/sha256.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <functional>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace drover::rt {

static constexpr int64_t blockElements = 1 << 16;

namespace {
/// Values of a parameter by their place in the model's tensor.
using ValueSource = std::function<void(int64_t first, int64_t count, float *values)>;

/// Puts a rank's part of the parameters where it lives.
class ParameterFiller {
public:
  ParameterFiller(const Program &program, const Coordinates &place, const ParameterMemory &memory)
      : program(program), place(place), memory(memory), block(static_cast<size_t>(blockElements)) {}

  void fill(const ParameterInfo &parameter, const ValueSource &source);

private:
  void store(uint8_t *target, int64_t count) const;

  const Program &program;
  const Coordinates &place;
  const ParameterMemory &memory;
  std::vector<float> block;
};
} // namespace

/// Stores the block's values in the type of the memory.
void ParameterFiller::store(uint8_t *target, int64_t count) const {
  if (memory.dtype == DROVER_F32) {
    std::memcpy(target, block.data(), size_t(count) * 4);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = floatToBfloat(block[size_t(i)]);
    std::memcpy(target + 2 * i, &bits, 2);
  }
}

void ParameterFiller::fill(const ParameterInfo &parameter, const ValueSource &source) {
  const BucketMemory &bucket = memory.buckets[size_t(parameter.bucket)];
  ElementRange own = bucket.range.intersect({parameter.offset, parameter.localElements});
  if (!bucket.data || own.elements == 0)
    return;
  TensorLayout layout(program.grid, place, parameter.shape, parameter.localShape, parameter.cuts);
  int64_t width = byteSize(memory.dtype);
  layout.forEachRun(own.first - parameter.offset, own.elements, [&](int64_t local, int64_t global, int64_t length) {
    uint8_t *target = bucket.data + (parameter.offset + local - bucket.range.first) * width;
    for (int64_t done = 0; done < length; done += blockElements) {
      int64_t count = std::min(blockElements, length - done);
      if (global < 0)
        std::fill_n(block.begin(), count, 0.0f);
      else
        source(global + done, count, block.data());
      store(target + done * width, count);
    }
  });
}

static void initializeRandomly(const Program &program, uint64_t seed, ParameterFiller &filler) {
  for (const ParameterInfo &parameter : program.parameters)
    filler.fill(parameter, [&](int64_t first, int64_t count, float *values) {
      if (parameter.normal)
        fillNormal(seed, parameter.name, parameter.initValue, first, count, values);
      else
        std::fill_n(values, count, float(parameter.initValue));
    });
}

/// Values from a file that has them in the parameter's own orientation.
static ValueSource straightSource(const uint8_t *data, DType dtype, float plus) {
  return [=](int64_t first, int64_t count, float *values) {
    toFloat(data + first * byteSize(dtype), dtype, count, values);
    if (plus != 0)
      for (int64_t i = 0; i < count; ++i)
        values[i] -= plus;
  };
}

/// Values from a file whose rows are the parameter's columns.
static ValueSource transposedSource(const uint8_t *data, DType dtype, float plus, const std::vector<int64_t> &shape) {
  return [data, dtype, plus, rows = shape[0], columns = shape[1]](int64_t first, int64_t count, float *values) {
    int64_t row = first / columns, column = first % columns;
    for (int64_t i = 0; i < count; ++i) {
      toFloat(data + (column * rows + row) * byteSize(dtype), dtype, 1, values + i);
      values[i] -= plus;
      if (++column == columns) {
        column = 0;
        ++row;
      }
    }
  };
}

//===----------------------------------------------------------------------===//
// The model's own files
//===----------------------------------------------------------------------===//

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

static void initializeFromModel(const Program &program, const InitOptions &options, ParameterFiller &filler) {
  for (const ParameterInfo &parameter : program.parameters)
    if (!parameter.source)
      fail("--init=model: the model that was compiled has no weights (parameter '", parameter.name,
           "' has no source), expected --init=random, FILE.safetensors or INDEX.json");
  const std::string &path = options.model.empty() ? program.modelFile : options.model;
  std::map<std::string, std::unique_ptr<MappedFile>> files;
  auto open = [&](const std::string &name) -> const MappedFile & {
    std::unique_ptr<MappedFile> &file = files[name];
    if (!file)
      file = std::make_unique<MappedFile>(name);
    return *file;
  };
  const MappedFile *model;
  try {
    model = &open(path);
  } catch (const Error &error) {
    fail(error.what(), "; where the model file has moved, give --model=PATH");
  }
  if (options.checkModel && !program.modelSha256.empty() && sha256(model->data(), model->size()) != program.modelSha256)
    fail(path, ": not the file that the program was compiled from (its SHA-256 differs)");
  std::string ownName = program.modelFile.substr(folderOf(program.modelFile).size());
  for (const ParameterInfo &parameter : program.parameters) {
    const ParameterSource &source = *parameter.source;
    const MappedFile &file = open(source.file == ownName ? path : folderOf(path) + source.file);
    uint64_t needed = uint64_t(parameter.elements * byteSize(source.dtype));
    if (source.bytes != needed || source.offset > file.size() || needed > file.size() - source.offset)
      fail(file.path(), ": parameter '", parameter.name, "' needs ", needed, " bytes at ", source.offset,
           ", the file has ", file.size());
    const uint8_t *data = file.data() + source.offset;
    filler.fill(parameter, source.transposed && parameter.shape.size() == 2
                               ? transposedSource(data, source.dtype, float(source.plus), parameter.shape)
                               : straightSource(data, source.dtype, float(source.plus)));
  }
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

namespace {
/// Matches the parameters with the tensors of a checkpoint.
class CheckpointReader {
public:
  CheckpointReader(const Program &program, const TensorFiles &files) : program(program), files(files) {}

  void match();
  void store(ParameterFiller &filler) const;

private:
  const StoredTensor *find(const std::string &name);
  void check(const ParameterInfo &parameter, const std::string &name, const StoredTensor &tensor);

  const Program &program;
  const TensorFiles &files;
  std::map<std::string, bool> used;
  std::vector<const StoredTensor *> sources; // parallel to the parameters
  std::vector<std::string> missing, misshapen;
};
} // namespace

/// Hugging Face saves a base model without the head's prefix ("transformer.", "model."), so a name is also looked up
/// without its first component.
const StoredTensor *CheckpointReader::find(const std::string &name) {
  size_t dot = name.find('.');
  for (const std::string &candidate : {name, dot == std::string::npos ? name : name.substr(dot + 1)}) {
    auto entry = files.tensors().find(candidate);
    if (entry != files.tensors().end()) {
      used[candidate] = true;
      return &entry->second;
    }
  }
  return nullptr;
}

void CheckpointReader::check(const ParameterInfo &parameter, const std::string &name, const StoredTensor &tensor) {
  std::optional<DType> dtype = storedDType(tensor.dtype);
  if (!dtype || !isFloat(*dtype))
    misshapen.push_back(name + ": " + tensor.dtype + " for f32");
  else if (tensor.shape != parameter.shape)
    misshapen.push_back(name + ": " + formatShape(tensor.shape) + " for " + formatShape(parameter.shape));
}

/// Buffers that older checkpoints hold beside the parameters: masks and RoPE frequencies, which the program computes.
static bool isKnownBuffer(const std::string &name) {
  for (const char *suffix :
       {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias"})
    if (endsWith(name, suffix))
      return true;
  return false;
}

void CheckpointReader::match() {
  std::vector<std::string> different, unexpected;
  for (const ParameterInfo &parameter : program.parameters) {
    const StoredTensor *source = find(parameter.name);
    std::string sourceName = parameter.name;
    if (source)
      check(parameter, parameter.name, *source);
    for (const std::string &alias : parameter.aliases) {
      auto entry = files.tensors().find(alias);
      if (entry == files.tensors().end())
        continue;
      used[alias] = true;
      check(parameter, alias, entry->second);
      bool equal = !source || (source->dtype == entry->second.dtype && source->shape == entry->second.shape &&
                               std::memcmp(source->data, entry->second.data, source->bytes) == 0);
      if (!equal)
        different.push_back(alias + " and " + sourceName);
      source = source ? source : &entry->second;
    }
    if (!source)
      missing.push_back(parameter.name);
    sources.push_back(source);
  }
  for (const auto &[name, tensor] : files.tensors())
    if (!used.count(name) && !isKnownBuffer(name))
      unexpected.push_back(name);
  std::string faults;
  auto add = [&](const char *what, const std::vector<std::string> &names) {
    if (!names.empty())
      faults += concat(faults.empty() ? "" : "; ", names.size(), " ", what, ": ", formatNames(names));
  };
  add("missing", missing);
  add("unexpected", unexpected);
  add("of another shape or dtype", misshapen);
  add("tied, but with different values", different);
  if (!faults.empty())
    fail(files.path(), ": does not fit the model's parameters: ", faults);
}

void CheckpointReader::store(ParameterFiller &filler) const {
  for (size_t i = 0; i < sources.size(); ++i)
    filler.fill(program.parameters[i], straightSource(sources[i]->data, *storedDType(sources[i]->dtype), 0));
}

static bool isFolder(const std::string &path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// What --save-weights and Hugging Face call the file of a folder.
static std::string checkpointIn(const std::string &folder) {
  const char *const names[] = {"model.safetensors.index.json", "model.safetensors"};
  for (const char *name : names) {
    std::string path = folder + "/" + name;
    if (::access(path.c_str(), F_OK) == 0)
      return path;
  }
  fail("--init=", folder, ": expected ", names[0], " or ", names[1], " in the folder");
}

void initializeParameters(const Program &program, const Coordinates &place, const InitOptions &options,
                          const ParameterMemory &memory) {
  ParameterFiller filler(program, place, memory);
  std::string source = options.source;
  if (source.empty()) {
    bool hasWeights = !program.parameters.empty() &&
                      std::all_of(program.parameters.begin(), program.parameters.end(),
                                  [](const ParameterInfo &parameter) { return parameter.source.has_value(); });
    source = hasWeights ? "model" : "random";
  }
  if (!options.model.empty() && source != "model")
    fail("--model=", options.model, ": expected --init=model with it");
  if (source == "random")
    return initializeRandomly(program, options.seed, filler);
  if (source == "model")
    return initializeFromModel(program, options, filler);
  if (isFolder(source))
    source = checkpointIn(source);
  if (!endsWith(source, ".safetensors") && !endsWith(source, ".json"))
    fail("--init=", source, ": expected model, random, FILE.safetensors, INDEX.json or the folder of one");
  TensorFiles files(source);
  CheckpointReader reader(program, files);
  reader.match();
  reader.store(filler);
}

} // namespace drover::rt
