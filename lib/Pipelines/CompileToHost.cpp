//===- CompileToHost.cpp - phases from bodies to an executable ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Nccl/Settings.h"
#include "drover/Schedule/BuildStepProgram.h"
#include "drover/Schedule/Serialize.h"
#include "drover/Target/Cuda/Cuda.h"
#include "drover/Target/Host/Host.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

using namespace mlir;

namespace drover {

/// The collectives of a lowered body, in the order in which they start.
static std::vector<schedule::BodyCollective> collectivesOf(Operation *function) {
  std::vector<schedule::BodyCollective> collectives;
  auto list = function->getAttrOfType<ArrayAttr>(rt::RtDialect::kCollectivesAttr);
  if (!list)
    return collectives;
  for (auto entry : list.getAsRange<DictionaryAttr>()) {
    auto number = [&](llvm::StringRef name) { return entry.getAs<IntegerAttr>(name).getInt(); };
    std::string dtype;
    llvm::raw_string_ostream(dtype) << entry.getAs<TypeAttr>("dtype").getValue();
    schedule::BodyCollective collective;
    collective.communicator = static_cast<uint32_t>(number("communicator"));
    collective.kind = static_cast<int32_t>(*rt::symbolizeCollectiveKind(entry.getAs<StringAttr>("kind").getValue()));
    collective.dtype = schedule::parseDType(dtype).value_or(schedule::DType::I8);
    collective.bytes = number("bytes");
    collective.reduction = number("reduction");
    collectives.push_back(collective);
  }
  return collectives;
}

/// Bodies of the step program are compiled functions of the same names; what they need for workspace is known from
/// here on, and so are the metadata.
LogicalResult Compilation::lower() {
  bool cuda = options.target == "cuda";
  host::HostOptions hostOptions;
  hostOptions.cpu = options.hostCpu;
  // Beside rings, what stays a collective is under way while others compute.
  hostOptions.tpOverlap = plan.tpOverlap == "none" ? "none" : "bulk";
  if (cuda && plan.attention != "auto") // generated has been run by tests, the others by no GPU yet
    hostOptions.attention = plan.attention;
  if (cuda && failed(cuda::verifyHasKernels(*module)))
    return failure();
  if (failed(runPasses([&](OpPassManager &manager) {
        // The schedule has read the distributions; kernels see shapes only.
        manager.addPass(tfm::createTfmEraseDistributions());
        if (cuda)
          cuda::buildCudaLoweringPipeline(manager, hostOptions);
        else
          host::buildHostLoweringPipeline(manager, hostOptions);
      })))
    return failure();
  for (schedule::Body &body : step.bodies) {
    Operation *function = module->lookupSymbol(body.name);
    auto bytes = function ? function->getAttrOfType<IntegerAttr>(rt::RtDialect::kWorkspaceAttr) : IntegerAttr();
    if (!bytes)
      return error() << "body '" << body.name << "' was lowered without '" << rt::RtDialect::kWorkspaceAttr << "'";
    body.workspaceBytes = bytes.getInt();
    body.collectives = collectivesOf(function);
    bodyNames.push_back(body.name);
  }
  schedule::measureWorkspace(step);
  // Kernels of a GPU are part of the program, and not compiled yet.
  return checksOnly || cuda ? success() : embed({}, "");
}

LogicalResult Compilation::embed(llvm::ArrayRef<host::GpuImage> images, StringRef gpuModules) {
  if (options.target == "cuda")
    ncclSettings = nccl::printSettings(nccl::deriveSettings(options.cluster ? &*options.cluster : nullptr, step));
  std::string metadata = schedule::serializeMetadata(step, ncclSettings);
  host::ProgramParts parts;
  parts.metadata = metadata;
  parts.actions =
      llvm::ArrayRef(reinterpret_cast<const char *>(step.actions.data()), step.actions.size() * sizeof(drover_action));
  parts.bodies = bodyNames;
  parts.images = images;
  parts.gpuModules = gpuModules;
  return host::embedProgram(*module, parts);
}

LogicalResult Compilation::object() {
  if (options.target == "cuda") {
    if (failed(kernels()))
      return failure();
    if (emitsKernels())
      return success();
  }
  host::HostOptions hostOptions;
  hostOptions.cpu = options.hostCpu;
  if (options.emit == Emit::Llvm)
    return writeText([&](raw_ostream &os) { return printState("object", os); });
  FailureOr<SmallVector<char, 0>> object = host::emitObject(*module, hostOptions);
  if (failed(object))
    return failure();
  // The object of an executable is a temporary file.
  objectFile = options.output;
  bool isLast = options.emit == Emit::Object || options.stopAfter == "object";
  if (!isLast) {
    SmallString<128> path;
    if (std::error_code code = llvm::sys::fs::createTemporaryFile("drover", "o", path))
      return error() << "cannot make a temporary file: " << code.message();
    objectFile = path.str().str();
  }
  if (objectFile.empty())
    return error() << "-o is needed for the object file";
  std::error_code code;
  llvm::raw_fd_ostream file(objectFile, code);
  if (!code) {
    file.write(object->data(), object->size());
    file.close();
    code = file.error();
  }
  return code ? error() << "cannot write '" << objectFile << "': " << code.message() : success();
}

LogicalResult Compilation::link() {
  llvm::FileRemover remove(objectFile);
  Location location = FileLineColLoc::get(&context, options.model.path, 0, 0);
  if (failed(linkExecutable(location, objectFile, options.output, options.runtimeDir)))
    return failure();
  if (options.target != "cuda")
    return success();
  if (plan.attention == "cudnn" && failed(copyCudnnLibrary(location, options.output, options.runtimeDir)))
    return failure();
  return writeNcclFiles(location);
}

} // namespace drover
