//===- Bootstrap.cpp - where rank 0 and a rank's device are ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/hash.h"
#include "drover/rt/launcher.h"
#include "drover/rt/text.h"

namespace drover::rt {

static const std::string *find(const Environment &environment, const char *name) {
  auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

static constexpr int largestPort = 65535;

/// "HOST:PORT", or "[ADDRESS]:PORT" where an IPv6 address has colons of its own.
static RendezvousAddress parseAddress(const std::string &text) {
  size_t colon = text.rfind(':');
  std::optional<int64_t> port = colon == std::string::npos ? std::nullopt : parseInteger(text.substr(colon + 1));
  if (colon == 0 || !port || *port < 1 || *port > largestPort)
    fail("DROVER_RT_RENDEZVOUS=", text, ": expected HOST:PORT with a port of 1 to ", largestPort);
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return {host, int(*port)};
}

/// The first of Slurm's list: "gpu07" of "gpu[07-09,12],login1".
static std::string firstHost(const std::string &list) {
  size_t open = list.find('['), comma = list.find(',');
  if (open == std::string::npos || comma < open)
    return list.substr(0, comma);
  size_t close = list.find(']', open), endOfNumber = list.find_first_of("-,]", open);
  size_t end = list.find(',', close);
  std::string behind = close == std::string::npos ? "" : list.substr(close + 1, end - close - 1);
  return list.substr(0, open) + list.substr(open + 1, endOfNumber - open - 1) + behind;
}

/// Below the ports that the system hands out (32768 on Linux), so that a job keeps its own.
static int portOf(uint64_t job) { return 20000 + int(job % 12000); }

RendezvousAddress findRendezvous(const Environment &environment, const Launcher &launcher) {
  if (const std::string *asked = find(environment, "DROVER_RT_RENDEZVOUS"))
    return parseAddress(*asked);
  const std::string *master = find(environment, "MASTER_ADDR"), *port = find(environment, "MASTER_PORT");
  if (launcher.name == "torchrun" && master && port) {
    std::optional<int64_t> number = parseInteger(*port);
    if (!number || *number < 1 || *number >= largestPort)
      fail("MASTER_PORT=", *port, ": expected a port of 1 to ", largestPort - 1);
    return {*master, int(*number) + 1};
  }
  const std::string *nodes = find(environment, "SLURM_STEP_NODELIST"), *job = find(environment, "SLURM_JOB_ID");
  if (launcher.name == "srun" && nodes && job) {
    const std::string *step = find(environment, "SLURM_STEP_ID");
    int64_t number = parseInteger(*job).value_or(0) + 17 * (step ? parseInteger(*step).value_or(0) : 0);
    return {firstHost(*nodes), portOf(uint64_t(number))};
  }
  const std::string *local = find(environment, "OMPI_COMM_WORLD_LOCAL_SIZE"),
                    *name = find(environment, "PMIX_NAMESPACE");
  if (launcher.name == "mpirun" && local && name && *local == std::to_string(launcher.size)) {
    Fnv1a hash;
    hash.mix(*name);
    return {"localhost", portOf(hash.value())};
  }
  fail(launcher.name,
       " does not say where rank 0 is: set DROVER_RT_RENDEZVOUS=HOST:PORT for all ranks, with rank 0's host "
       "and a free port of it");
}

int findDevice(const Environment &environment, int visible) {
  if (visible == 1)
    return 0;
  for (const char *name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const std::string *text = find(environment, name);
    if (!text)
      continue;
    std::optional<int64_t> number = parseInteger(*text);
    if (!number || *number < 0 || *number >= visible)
      fail(name, "=", *text, ": the driver shows this process ", visible,
           " devices, expected one for each rank of the machine");
    return int(*number);
  }
  fail("the driver shows this process ", visible,
       " devices, and no variable says which is this process's: set "
       "CUDA_VISIBLE_DEVICES to one, or LOCAL_RANK");
}

} // namespace drover::rt
