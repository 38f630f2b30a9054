//===- NcclProcess.cpp - what a process sets up for NCCL ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Once a process and before it has threads: setenv may move what another thread's getenv returns.
#include "comm/NcclProcess.h"
#include "comm/NcclLibrary.h"
#include "drover/rt/error.h"
#include "drover/rt/sha256.h"
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace drover::rt {

namespace {
/// A field of ncclConfig_t, and what of NCCL's variables goes before it.
struct Field {
  const char *name;
  int nccl::Config::*member;
  int since; // version of NCCL
  const char *variable;
};
constexpr Field fields[] = {
    {"min_ctas", &nccl::Config::minCtas, 21700, "NCCL_MIN_CTAS"},
    {"max_ctas", &nccl::Config::maxCtas, 21700, "NCCL_MAX_CTAS"},
    {"cga_cluster_size", &nccl::Config::cgaClusterSize, 21700, "NCCL_CGA_CLUSTER_SIZE"},
    {"cta_policy", &nccl::Config::ctaPolicy, 22700, "NCCL_CTA_POLICY"},
    {"channels_per_net_peer", &nccl::Config::channelsPerNetPeer, 22800, "NCCL_NCHANNELS_PER_NET_PEER"},
    {"traffic_class", &nccl::Config::trafficClass, 22600, "NCCL_IB_TC"},
};

constexpr int envPluginSince = 22800;
/// NCCL keeps a plugin's name in so many bytes.
constexpr size_t longestPluginName = 254;

/// Set by the user; an empty variable counts as NCCL counts it, as set.
const char *ownVariable(const std::string &name) { return std::getenv(name.c_str()); }

class Preparation {
public:
  Preparation(const NcclRequest &request, NcclProcess &process) : request(request), process(process) {
    folder = request.plugins;
    if (const char *asked = std::getenv("DROVER_RT_NCCL_PLUGINS"); folder.empty() && asked)
      folder = asked;
    std::error_code code;
    if (folder.empty())
      folder = std::filesystem::read_symlink("/proc/self/exe", code).parent_path();
  }

  void run() {
    readSettings();
    NcclLibrary library(request.library);
    int version = library.versionNumber();
    if (process.settings.cluster.empty()) {
      note(process.settings.note.empty() ? "NCCL's defaults: the program has no settings" : process.settings.note);
      return;
    }
    note(concat("NCCL ", library.version(), ", settings for cluster ", process.settings.cluster));
    noteOthers();
    noteOverrides(version);
    setEnvironment(version);
    usePlugin("tuner", "NCCL_TUNER_PLUGIN", "its own choice of algorithms");
    if (!others.empty())
      note(concat("of the environment: ", others));
  }

private:
  void note(const std::string &text) { process.notes.push_back(text); }

  /// NCCL's variables that the user has set and that take the place of nothing here.
  void noteOthers() {
    for (char **entry = environ; entry && *entry; ++entry) {
      std::string text = *entry, name = text.substr(0, text.find('='));
      bool known = name.rfind("NCCL_", 0) != 0 || name == "NCCL_LAUNCH_ORDER_IMPLICIT" || name == "NCCL_ALGO" ||
                   name == "NCCL_PROTO" || name == "NCCL_ENV_PLUGIN" || name == "NCCL_TUNER_PLUGIN";
      for (const Field &field : fields)
        known |= name == field.variable;
      for (const NcclVariable &variable : process.settings.environment)
        known |= name == variable.name;
      if (!known)
        others += (others.empty() ? "" : " ") + text;
    }
  }

  void readSettings() {
    const char *path = std::getenv(ncclSettingsVariable);
    if (path && *path)
      text = readText(path);
    else
      text = request.settings;
    if (text.empty())
      return;
    process.settings = parseNcclSettings(text, path && *path ? path : "nccl settings");
    process.digest = sha256(text.data(), text.size());
  }

  /// What the user's variables take the place of: NCCL itself sees to it.
  void noteOverrides(int version) {
    for (const Field &field : fields) {
      bool used = false;
      for (const NcclDimension &dimension : process.settings.dimensions)
        used |= dimension.fields.count(field.name) > 0;
      if (!used)
        continue;
      if (const char *own = ownVariable(field.variable))
        note(concat(field.variable, "=", own, " of the environment counts, in place of ", field.name,
                    " of the communicators"));
      else if (version < field.since)
        note(concat(field.name, " needs NCCL ", field.since / 10000, ".", field.since / 100 % 100,
                    ": left at NCCL's default"));
    }
    for (const NcclDimension &dimension : process.settings.dimensions)
      if (dimension.fields.count("windows") && version < nccl::windowsSince) {
        note("windows need NCCL 2.27: gathers within a server take multiprocessors");
        break;
      }
    for (const char *name : {"NCCL_ALGO", "NCCL_PROTO"})
      if (const char *own = ownVariable(name))
        note(concat(name, "=", own, " of the environment counts, in place of the tuner's table"));
  }

  /// NCCL's plugin asks for what neither the environment nor NCCL's own configuration files say; where there is none
  /// the variables are set, and go before those files.
  void setEnvironment(int version) {
    std::vector<const NcclVariable *> ours;
    for (const NcclVariable &variable : process.settings.environment) {
      const char *own = ownVariable(variable.name);
      if (!own)
        ours.push_back(&variable);
      else if (variable.value != own)
        note(concat(variable.name, "=", own, " of the environment counts, in place of ", variable.value, " (",
                    variable.reason, ")"));
    }
    if (ours.empty())
      return;
    if (version >= envPluginSince && usePlugin("env", "NCCL_ENV_PLUGIN", "variables of this process"))
      return;
    for (const NcclVariable *variable : ours)
      setVariable(variable->name.c_str(), variable->value.c_str());
  }

  /// Names libnccl-KIND-drover.so to NCCL and hands it the settings. False where NCCL goes without it.
  bool usePlugin(const char *kind, const char *variable, const char *instead) {
    if (const char *own = ownVariable(variable)) {
      note(concat(variable, "=", own, " of the environment counts, in place of drover's"));
      return false;
    }
    std::string path = (folder / concat("libnccl-", kind, "-drover.so")).string();
    void *plugin = path.size() <= longestPluginName ? ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    void *use = plugin ? ::dlsym(plugin, "drover_nccl_use_settings") : nullptr;
    if (!use) {
      const char *reason = path.size() > longestPluginName ? "its name is too long for NCCL" : ::dlerror();
      note(concat("no ", kind, " plugin, NCCL has ", instead, ": ", reason ? reason : path));
      return false;
    }
    const char *problem = reinterpret_cast<const char *(*)(const char *, size_t)>(use)(text.data(), text.size());
    if (problem)
      fail(path, ": ", problem);
    setVariable(variable, path.c_str());
    // Never closed: NCCL opens the same one.
    if (void *creating = ::dlsym(plugin, "drover_nccl_creating"); creating && request.ranks == 1)
      process.creating = reinterpret_cast<void (*)(int64_t)>(creating);
    return true;
  }

  const NcclRequest &request;
  NcclProcess &process;
  std::filesystem::path folder;
  std::string text, others;
};
} // namespace

void configure(nccl::Config &config, const NcclDimension &dimension, int version) {
  for (const Field &field : fields) {
    auto found = dimension.fields.find(field.name);
    if (found != dimension.fields.end() && version >= field.since)
      config.*field.member = int(found->second);
  }
}

std::shared_ptr<const NcclProcess> prepareNccl(const NcclRequest &request) {
  auto process = std::make_shared<NcclProcess>();
  // One thread of a rank issues the operations of all its communicators, on every rank in one order; with this NCCL
  // keeps that order on the device. What the user says counts.
  setVariable("NCCL_LAUNCH_ORDER_IMPLICIT", "1");
  setVariable("CUDA_MODULE_LOADING", "EAGER"); // as CudaLibrary has it, which may come behind threads
  Preparation(request, *process).run();
  return process;
}

std::vector<std::string> describe(const NcclProcess &process) { return process.notes; }

} // namespace drover::rt
