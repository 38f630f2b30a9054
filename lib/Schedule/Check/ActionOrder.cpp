//===- ActionOrder.cpp - what happens before what -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Vector clocks over streams (Mattern, Virtual Time and Global States of Distributed Systems, 1989): a node's clock
// counts, for each stream, the actions that are complete before the node starts.
#include "ActionOrder.h"
#include <algorithm>
#include <map>

using namespace drover::schedule;

std::string Faults::describe(size_t stage, uint64_t index) const {
  const drover_action &action = step.actions[batch->stages[stage].firstAction + index];
  std::string text = joinText("stage ", stage, ", action ", index, " (", drover_action_name(action.kind));
  if (drover_action_is_of_bucket(action.kind))
    text += joinText(" of bucket ", action.chunk);
  else if (action.kind != DROVER_COUNT && action.kind != DROVER_CLIP)
    text += joinText(" of chunk ", action.chunk, ", phase ", action.phase, ", microbatch ", action.microbatch);
  return text + ")";
}

ActionOrder::ActionOrder(const StepProgram &step, const Batch &batch, Faults &faults, CheckWork &work)
    : step(step), batch(batch), faults(faults), work(work) {
  for (const Stage &stage : batch.stages) {
    firstNode.push_back(numNodes);
    numNodes += stage.numActions;
  }
}

bool ActionOrder::build() {
  size_t before = faults.count();
  if (!checkFields())
    return false;
  addStageEdges();
  matchMessages();
  matchGroups();
  return propagate() && faults.count() == before;
}

bool ActionOrder::checkFields() {
  size_t before = faults.count();
  for (size_t s = 0; s < batch.stages.size(); ++s) {
    const Stage &stage = batch.stages[s];
    for (uint64_t i = 0; i < stage.numActions; ++i) {
      const drover_action &a = action(s, i);
      if (a.kind > DROVER_CLIP || a.stream >= DROVER_NUM_STREAMS)
        faults.report(faults.describe(s, i), ": kind ", int(a.kind), " on stream ", int(a.stream),
                      " is none that exists");
      if (a.chunk >= (drover_action_is_of_bucket(a.kind) ? step.buckets.size() : step.chunks.size()) &&
          a.kind != DROVER_COUNT && a.kind != DROVER_CLIP)
        faults.report(faults.describe(s, i), ": there are ", step.chunks.size(), " chunks and ", step.buckets.size(),
                      " buckets");
      if (a.binding >= stage.bindings.size() && a.binding != UINT32_MAX)
        faults.report(faults.describe(s, i), ": binding ", a.binding, " of ", stage.bindings.size());
      if (uint64_t(a.first_wait) + a.num_waits > stage.waits.size()) {
        faults.report(faults.describe(s, i), ": waits up to ", uint64_t(a.first_wait) + a.num_waits, " of ",
                      stage.waits.size());
        continue;
      }
      for (uint32_t w = 0; w < a.num_waits; ++w)
        if (stage.waits[a.first_wait + w] >= stage.numActions)
          faults.report(faults.describe(s, i), ": waits for action ", stage.waits[a.first_wait + w], " of ",
                        stage.numActions);
    }
  }
  return faults.count() == before;
}

void ActionOrder::addStageEdges() {
  position.resize(numNodes);
  for (size_t s = 0; s < batch.stages.size(); ++s) {
    const Stage &stage = batch.stages[s];
    std::vector<int64_t> last(DROVER_NUM_STREAMS, -1);
    for (uint64_t i = 0; i < stage.numActions; ++i) {
      const drover_action &a = action(s, i);
      uint64_t n = node(s, i);
      addEdge(2 * n, 2 * n + 1, false);
      if (last[a.stream] >= 0) {
        uint64_t previous = node(s, static_cast<uint64_t>(last[a.stream]));
        addEdge(2 * previous + 1, 2 * n, false);
        position[n] = position[previous] + 1;
      }
      last[a.stream] = static_cast<int64_t>(i);
      for (uint32_t w = 0; w < a.num_waits; ++w)
        addEdge(2 * node(s, stage.waits[a.first_wait + w]) + 1, 2 * n, false);
      // One thread issues the list: an action is issued when those before it have started, and compute has ended; also
      // what the owner of a tied bucket sends, behind which the gather of its shards is issued.
      if (i > 0) {
        uint64_t previous = node(s, i - 1);
        const drover_action &before = action(s, i - 1);
        bool blocks = before.stream == DROVER_STREAM_COMPUTE ||
                      (before.kind == DROVER_GATHER && before.peer != 0 && step.isSharded());
        addEdge(2 * previous + (blocks ? 1 : 0), 2 * n, true);
      }
    }
  }
}

void ActionOrder::rendezvous(const std::vector<std::pair<size_t, uint64_t>> &members, int32_t source) {
  for (auto [fromStage, from] : members)
    for (auto [toStage, to] : members)
      if (fromStage != toStage)
        addEdge(2 * node(fromStage, from), 2 * node(toStage, to) + 1,
                source >= 0 && fromStage != static_cast<size_t>(source));
}

void ActionOrder::matchMessages() {
  using Place = std::pair<size_t, uint64_t>;
  std::map<uint32_t, std::pair<std::vector<Place>, std::vector<Place>>> messages; // by communicator: sends, receives
  for (size_t s = 0; s < batch.stages.size(); ++s)
    for (uint64_t i = 0; i < batch.stages[s].numActions; ++i) {
      const drover_action &a = action(s, i);
      if (a.kind == DROVER_SEND)
        messages[a.peer].first.push_back({s, i});
      else if (a.kind == DROVER_RECEIVE)
        messages[a.peer].second.push_back({s, i});
    }
  for (auto &[id, lists] : messages) {
    auto &[sends, receives] = lists;
    auto found = std::find_if(step.communicators.begin(), step.communicators.end(),
                              [id = id](const Communicator &other) { return other.id == id && !other.isTie; });
    if (found == step.communicators.end()) {
      Place place = sends.empty() ? receives.front() : sends.front();
      faults.report(faults.describe(place.first, place.second), ": communicator ", id, " is no edge of the pipeline");
      continue;
    }
    auto checkEnd = [&, id = id](const Place &place, int32_t stage) {
      if (place.first != static_cast<size_t>(stage))
        faults.report(faults.describe(place.first, place.second), ": communicator ", id, " goes from stage ",
                      found->from, " to ", found->to);
    };
    for (const Place &send : sends)
      checkEnd(send, found->from);
    for (const Place &receive : receives)
      checkEnd(receive, found->to);
    for (size_t k = 0; k < std::max(sends.size(), receives.size()); ++k) {
      if (k >= sends.size() || k >= receives.size()) {
        Place place = k < sends.size() ? sends[k] : receives[k];
        faults.report(faults.describe(place.first, place.second), " has no ", k < sends.size() ? "receive" : "send",
                      ": communicator ", id, " has ", sends.size(), " sends and ", receives.size(), " receives");
        break;
      }
      const drover_action &send = action(sends[k].first, sends[k].second);
      const drover_action &receive = action(receives[k].first, receives[k].second);
      bool forward = send.phase == 0;
      int64_t target = int64_t(send.chunk) + (forward ? 1 : -1);
      if (receive.phase != send.phase || receive.microbatch != send.microbatch || receive.chunk != target ||
          forward != found->forward)
        faults.report(faults.describe(sends[k].first, sends[k].second), " meets ",
                      faults.describe(receives[k].first, receives[k].second), " on communicator ", id);
      // The data arrive after they are sent. That a send ends only when its receive has started is true of some
      // backends: it can close a cycle, and orders nothing.
      addEdge(2 * node(sends[k].first, sends[k].second), 2 * node(receives[k].first, receives[k].second) + 1, false);
      addEdge(2 * node(receives[k].first, receives[k].second), 2 * node(sends[k].first, sends[k].second) + 1, true);
    }
  }
}

void ActionOrder::matchGroups() {
  // Operations of several stages: by communicator and stage, in the order of issue.
  std::map<uint32_t, std::map<size_t, std::vector<uint64_t>>> operations;
  std::map<uint32_t, std::vector<int32_t>> members;
  for (const Communicator &communicator : step.communicators)
    if (communicator.isTie)
      members[communicator.id] = communicator.stages;
  for (size_t s = 0; s < batch.stages.size(); ++s) {
    members[DROVER_COMM_WORLD].push_back(static_cast<int32_t>(s));
    for (uint64_t i = 0; i < batch.stages[s].numActions; ++i) {
      const drover_action &a = action(s, i);
      if (a.kind == DROVER_COUNT || a.kind == DROVER_CLIP)
        operations[DROVER_COMM_WORLD][s].push_back(i);
      else if ((a.kind == DROVER_GATHER || a.kind == DROVER_REDUCE) && a.peer != 0)
        operations[a.peer][s].push_back(i);
    }
  }
  for (auto &[id, byStage] : operations) {
    const std::vector<int32_t> &stages = members[id];
    for (const auto &[stage, list] : byStage)
      if (std::find(stages.begin(), stages.end(), static_cast<int32_t>(stage)) == stages.end()) {
        faults.report(faults.describe(stage, list.front()), ": the stage is no member of communicator ", id);
        return;
      }
    size_t most = 0;
    for (const auto &[stage, list] : byStage)
      most = std::max(most, list.size());
    for (size_t k = 0; k < most; ++k) {
      std::vector<std::pair<size_t, uint64_t>> group;
      for (int32_t stage : stages)
        if (auto list = byStage.find(static_cast<size_t>(stage)); list != byStage.end() && k < list->second.size())
          group.push_back({static_cast<size_t>(stage), list->second[k]});
      const drover_action &first = action(group.front().first, group.front().second);
      if (group.size() != stages.size()) {
        faults.report(faults.describe(group.front().first, group.front().second), ": only ", group.size(), " of ",
                      stages.size(), " stages take part in operation ", k, " of communicator ", id);
        break;
      }
      for (auto [stage, index] : group)
        if (const drover_action &other = action(stage, index);
            other.kind != first.kind || (other.chunk != first.chunk && id != DROVER_COMM_WORLD))
          faults.report(faults.describe(group.front().first, group.front().second), " meets ",
                        faults.describe(stage, index), " on communicator ", id);
      // Parameters flow from the owner of a bucket, sums from and to all.
      bool isGather = first.kind == DROVER_GATHER;
      rendezvous(group, isGather ? step.ownerOf(step.buckets[first.chunk]) : -1);
    }
  }
}

bool ActionOrder::propagate() {
  // Edges by their source, as one array.
  std::vector<uint32_t> firstEdge(2 * numNodes + 1, 0), missing(2 * numNodes, 0);
  for (const auto &[from, edge] : edges) {
    ++firstEdge[from + 1];
    ++missing[edge.to];
  }
  for (size_t i = 1; i < firstEdge.size(); ++i)
    firstEdge[i] += firstEdge[i - 1];
  std::vector<Edge> sorted(edges.size());
  std::vector<uint32_t> next(firstEdge.begin(), firstEdge.end() - 1);
  for (const auto &[from, edge] : edges)
    sorted[next[from]++] = edge;
  edges.clear();
  edges.shrink_to_fit();

  size_t width = numStreams();
  clocks.assign(numNodes * width, 0);
  std::vector<uint32_t> stageOfNode(numNodes);
  for (size_t s = 0; s < batch.stages.size(); ++s)
    std::fill_n(stageOfNode.begin() + static_cast<ptrdiff_t>(firstNode[s]), batch.stages[s].numActions,
                static_cast<uint32_t>(s));
  // A completion's clock is needed only until its edges are followed; those of starts are kept.
  std::map<uint32_t, std::vector<uint32_t>> completions;
  std::vector<uint32_t> ready;
  for (uint32_t event = 0; event < missing.size(); ++event)
    if (missing[event] == 0)
      ready.push_back(event);
  size_t done = 0;
  std::vector<uint32_t> current(width);
  while (!ready.empty()) {
    uint32_t event = ready.back();
    ready.pop_back();
    ++done;
    uint64_t n = event / 2;
    bool isStart = event % 2 == 0;
    if (isStart) {
      std::copy_n(clocks.begin() + static_cast<ptrdiff_t>(n * width), width, current.begin());
    } else {
      auto own = completions.find(event);
      current = std::move(own->second);
      completions.erase(own);
      size_t stage = stageOfNode[n];
      uint32_t &tick = current[streamOf(stage, n - firstNode[stage])];
      tick = std::max(tick, position[n] + 1);
    }
    for (uint32_t e = firstEdge[event]; e < firstEdge[event + 1]; ++e) {
      const Edge &edge = sorted[e];
      ++work.edges;
      if (!edge.isOnHost) {
        if (edge.to % 2 == 0) {
          uint32_t *target = &clocks[edge.to / 2 * width];
          for (size_t k = 0; k < width; ++k)
            target[k] = std::max(target[k], current[k]);
        } else {
          std::vector<uint32_t> &target = completions[edge.to];
          target.resize(width, 0);
          for (size_t k = 0; k < width; ++k)
            target[k] = std::max(target[k], current[k]);
        }
      }
      if (--missing[edge.to] == 0)
        ready.push_back(edge.to);
    }
  }
  if (done == missing.size())
    return true;
  reportCycle(missing);
  return false;
}

/// Names the first action of each stage that never gets to its end.
void ActionOrder::reportCycle(const std::vector<uint32_t> &missing) {
  std::string text;
  size_t named = 0;
  for (size_t s = 0; s < batch.stages.size() && named < 4; ++s)
    for (uint64_t i = 0; i < batch.stages[s].numActions; ++i)
      if (missing[2 * node(s, i) + 1] != 0) {
        text += (named++ ? "; " : "") + faults.describe(s, i);
        break;
      }
  faults.report("a cycle of waits, nothing gets past ", text);
}
