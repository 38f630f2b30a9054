//===- ImporterNodes.cpp - nodes, functions, branches ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Importer.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/bit.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

const Value *Importer::lookup(StringRef name) const {
  for (size_t i = scopes.size(); i-- > firstVisible;) {
    auto found = scopes[i].find(name);
    if (found != scopes[i].end())
      return &found->second;
  }
  return nullptr;
}

llvm::StringSet<> Importer::visibleNames() const {
  llvm::StringSet<> result;
  for (size_t i = firstVisible; i < scopes.size(); ++i)
    for (const auto &entry : scopes[i])
      result.insert(entry.first());
  return result;
}

void Importer::define(StringRef name, const Value &value) {
  if (!name.empty())
    scopes.back()[name] = value;
}

int64_t Importer::opsetOf(StringRef domain) const {
  if (function)
    for (const OpsetImport &opset : function->opsets)
      if (opset.domain == domain)
        return opset.version;
  return model.opset(domain);
}

const Function *Importer::findFunction(const Node &node) const {
  for (const Function &candidate : model.functions)
    if (candidate.name == node.opType && candidate.domain == node.domain && candidate.overload == node.overload)
      return &candidate;
  return nullptr;
}

/// The node with references to the attributes of the enclosing call replaced.
Node Importer::withAttributes(const Node &node) const {
  Node result = node;
  result.attributes.clear();
  for (const Attribute &attribute : node.attributes) {
    if (attribute.refName.empty()) {
      result.attributes.push_back(attribute);
      continue;
    }
    // One that the call leaves out and that has no default is absent here, too.
    if (const Attribute *given = attributes ? attributes->lookup(attribute.refName) : nullptr) {
      result.attributes.push_back(*given);
      result.attributes.back().name = attribute.name;
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

const Tensor *tensorOf(const Node &node) {
  const Attribute *value = node.domain.empty() && node.opType == "Constant" ? node.attribute("value") : nullptr;
  return value ? value->t.get() : nullptr;
}

void nameConstants(std::vector<Node> &nodes) {
  for (Node &node : nodes)
    for (Attribute &attribute : node.attributes) {
      if (attribute.g)
        nameConstants(attribute.g->nodes);
      if (!node.domain.empty() || node.opType != "Constant" || node.outputs.empty())
        continue;
      if (attribute.name == "value_floats" && attribute.refName.empty()) {
        auto tensor = std::make_shared<Tensor>();
        tensor->type = ElemType::Float;
        tensor->dims.push_back(attribute.floats.size());
        for (float value : attribute.floats)
          tensor->integers.push_back(bit_cast<uint32_t>(value));
        attribute.name = "value";
        attribute.type = Attribute::TensorType;
        attribute.t = std::move(tensor);
      }
      if (attribute.name == "value" && attribute.t)
        attribute.t->name = node.outputs.front();
    }
}

void Importer::countUses(ArrayRef<Node> nodes, ArrayRef<Tensor> initializers, StringMap<const Tensor *> &tensors) {
  for (const Tensor &tensor : initializers)
    tensors[tensor.name] = &tensor;
  for (const Node &node : nodes)
    if (const Tensor *tensor = tensorOf(node)) {
      tensors[tensor->name] = tensor;
      parameters->constantNodes.insert(tensor);
    }
  for (const Node &node : nodes) {
    for (StringRef input : node.inputs)
      if (const Tensor *tensor = tensors.lookup(input))
        ++parameters->uses[tensor];
    for (const Attribute &attribute : node.attributes)
      if (attribute.g)
        countUses(attribute.g->nodes, attribute.g->initializers, tensors);
  }
}

//===----------------------------------------------------------------------===//
// Unsupported nodes
//===----------------------------------------------------------------------===//

void Importer::recordUnsupported(const Node &node, StringRef why, StringRef help) {
  StringRef name = !node.name.empty() ? node.name : node.outputs.empty() ? StringRef("?") : node.outputs.front();
  unsupportedNodes.push_back({node.opType.str(), node.domain.str(), name.str(), why.str(), help.str()});
}

/// One diagnostic: a note for each kind of problem with all its nodes.
void Importer::reportUnsupported() {
  InFlightDiagnostic diagnostic = emitError(fileLocation())
                                  << unsupportedNodes.size()
                                  << (unsupportedNodes.size() == 1 ? " node is not supported"
                                                                   : " nodes are not supported");
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const Unsupported &entry : unsupportedNodes) {
    std::string domain = entry.domain.empty() ? "" : entry.domain + ".";
    std::string head = domain + entry.opType + ": " + entry.why + (entry.help.empty() ? "" : "; " + entry.help);
    auto found = find_if(groups, [&](const auto &group) { return group.first == head; });
    if (found == groups.end())
      found = groups.insert(groups.end(), {head, {}});
    found->second.push_back("'" + entry.name + "'");
  }
  for (const auto &[head, nodes] : groups)
    diagnostic.attachNote() << head << ": " << join(nodes, ", ");
}

//===----------------------------------------------------------------------===//
// Walk
//===----------------------------------------------------------------------===//

bool Importer::processNodes(ArrayRef<Node> nodes, ArrayRef<StringRef> results, StringRef where) {
  Expected<std::vector<const Node *>> order = sortNodes(nodes, visibleNames(), where);
  if (!order)
    return error(fileLocation(),
                 (where.empty() ? std::string() : "in " + where.str() + ": ") + toString(order.takeError()));
  // Only what the results need: dead branches of an export may hold anything.
  llvm::StringSet<> live;
  for (StringRef result : results)
    live.insert(result);
  std::vector<const Node *> needed;
  for (const Node *node : reverse(*order)) {
    if (none_of(node->outputs, [&](StringRef output) { return live.contains(output); }))
      continue;
    needed.push_back(node);
    forEachRead(*node, [&](StringRef name) { live.insert(name); });
  }
  for (const Node *node : reverse(needed))
    if (!processNode(*node, live))
      return false;
  return true;
}

bool Importer::processNode(const Node &original, const llvm::StringSet<> &live) {
  // Every call may be long; a bound keeps nested functions from multiplying without end.
  if (++processed > 10'000'000)
    return error(fileLocation(), "more than 10 million nodes after inlining");
  bool hasReference = any_of(original.attributes, [](const Attribute &a) { return !a.refName.empty(); });
  Node substituted;
  if (hasReference)
    substituted = withAttributes(original);
  const Node &node = hasReference ? substituted : original;

  auto skip = [&] {
    for (StringRef output : node.outputs)
      missing.insert(output);
    return true;
  };
  auto miss = [&](StringRef why, StringRef help) {
    recordUnsupported(node, why, help);
    return skip();
  };
  const Function *called = findFunction(node);
  bool isBranch = !called && node.domain.empty() && node.opType == "If";
  Handler handler = OperatorTable::get().lookup(node.domain, node.opType);
  // Before anything is asked of the inputs: all of these are reported, also behind one another.
  if (!called && !isBranch && !handler) {
    if (node.opType == "Loop" || node.opType == "Scan")
      return miss("loops are not supported", "export with fixed sizes, or without scripted control flow");
    if (node.opType.contains("NBits") || node.opType.contains("Quantize") || node.opType.contains("Integer"))
      return miss("quantized operators are not supported", "export the model in float32, float16 or bfloat16");
    return miss("there is no rule for this operator",
                "export without the fusion that makes it, or decompose it into operators of ai.onnx");
  }
  std::vector<Value> inputs;
  bool blocked = false;
  forEachRead(node, [&](StringRef name) { blocked |= missing.contains(name); });
  if (blocked)
    return skip();
  for (StringRef name : node.inputs)
    inputs.push_back(name.empty() ? Value() : *lookup(name));

  builder->location = locationOf(node);
  if (called)
    return processFunction(node, *called, inputs);
  if (isBranch)
    return processIf(node);
  if (std::string wrong = checkSignature(node); !wrong.empty())
    return error(builder->location, node.opType + ": " + wrong);
  NodeContext context(node, opsetOf(node.domain), *builder, *parameters, *data);
  context.inputs = std::move(inputs);
  for (StringRef output : node.outputs)
    context.wanted.push_back(!output.empty() && live.contains(output));
  handler(context);
  if (builder->restart)
    return false;
  if (!builder->error.empty())
    return error(builder->location, node.opType + ": " + builder->error);
  if (context.unsupportedWhy.empty())
    for (auto [index, output] : enumerate(node.outputs))
      if (context.isWanted(index) && !context.outputs[index].isValid())
        context.unsupported("output " + Twine(index) + " is not supported");
  if (!context.unsupportedWhy.empty())
    return miss(context.unsupportedWhy, context.unsupportedHelp);
  for (auto [output, value] : zip(node.outputs, context.outputs)) {
    for (const Expr &size : value.shape)
      if (!size.isValid())
        return error(builder->location, node.opType + ": a size is too large");
    define(output, value);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Functions and branches
//===----------------------------------------------------------------------===//

bool Importer::processFunction(const Node &node, const Function &called, ArrayRef<Value> inputs) {
  if (depth >= 32)
    return error(locationOf(node), "function calls nested deeper than 32; is '" + called.name + "' recursive?");
  if (inputs.size() > called.inputs.size() || node.outputs.size() > called.outputs.size())
    return error(locationOf(node), "a call of '" + called.name + "' has " + Twine(inputs.size()) + " inputs and " +
                                       Twine(node.outputs.size()) + " outputs, the function " +
                                       Twine(called.inputs.size()) + " and " + Twine(called.outputs.size()));
  Attributes given;
  for (const Attribute &attribute : called.defaults)
    given[attribute.name] = &attribute;
  for (const Attribute &attribute : node.attributes)
    given[attribute.name] = &attribute;
  const Attributes *outerAttributes = std::exchange(attributes, &given);
  const Function *outerFunction = std::exchange(function, &called);
  size_t outerVisible = std::exchange(firstVisible, scopes.size());
  llvm::StringSet<> outerMissing = std::exchange(missing, {});
  scopes.emplace_back();
  ++depth;
  for (auto [index, name] : enumerate(called.inputs))
    define(name, index < inputs.size() ? inputs[index] : Value());

  std::string where = ("function '" + called.name + "'").str();
  bool done = processNodes(called.nodes, called.outputs, where);
  std::vector<std::optional<Value>> results;
  for (StringRef name : called.outputs) {
    const Value *value = done && !missing.contains(name) ? lookup(name) : nullptr;
    if (done && !value && !missing.contains(name))
      done = error(locationOf(node), where + " does not define its output '" + name.str() + "'");
    results.push_back(value ? std::optional<Value>(*value) : std::nullopt);
  }

  --depth;
  scopes.pop_back();
  missing = std::move(outerMissing);
  firstVisible = outerVisible;
  function = outerFunction;
  attributes = outerAttributes;
  if (!done)
    return false;
  for (auto [output, value] : zip(node.outputs, results)) {
    if (value)
      define(output, *value);
    else
      missing.insert(output);
  }
  return true;
}

bool Importer::processIf(const Node &node) {
  const Value *condition = node.inputs.empty() ? nullptr : lookup(node.inputs.front());
  std::optional<double> chosen = condition ? condition->splat() : std::nullopt;
  const Attribute *branch = chosen ? node.attribute(*chosen != 0 ? "then_branch" : "else_branch") : nullptr;
  if (!chosen) {
    recordUnsupported(node, "a branch on data is not supported",
                      "choose one with --input=NAME=ones or zeros where an input decides");
    for (StringRef output : node.outputs)
      missing.insert(output);
    return true;
  }
  if (!branch || !branch->g)
    return error(locationOf(node), "If has no graph for its branch");
  if (depth >= 32)
    return error(locationOf(node), "branches nested deeper than 32");
  const Graph &graph = *branch->g;
  if (graph.outputs.size() != node.outputs.size())
    return error(locationOf(node),
                 "If has " + Twine(node.outputs.size()) + " outputs, its branch " + Twine(graph.outputs.size()));
  ++depth;
  scopes.emplace_back();
  std::vector<StringRef> results;
  for (const ValueInfo &output : graph.outputs)
    results.push_back(output.name);
  bool done = addInitializers(graph, scopes.back()) && processNodes(graph.nodes, results, "a branch");
  std::vector<std::optional<Value>> values;
  for (StringRef name : results) {
    const Value *value = done && !missing.contains(name) ? lookup(name) : nullptr;
    if (done && !value && !missing.contains(name))
      done = error(locationOf(node), "a branch does not define its output '" + name + "'");
    values.push_back(value ? std::optional<Value>(*value) : std::nullopt);
  }
  scopes.pop_back();
  --depth;
  if (!done)
    return false;
  for (auto [output, value] : zip(node.outputs, values)) {
    if (value)
      define(output, *value);
    else
      missing.insert(output);
  }
  return true;
}

} // namespace drover::onnx
