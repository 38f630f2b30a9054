//===- InprocExchange.cpp - one operation between threads -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/InprocExchange.h"
#include "comm/Parts.h"

namespace drover::rt {

static bool isMessage(OperationKind kind) { return kind == OperationKind::Send || kind == OperationKind::Receive; }

InprocExchange::InprocExchange(InprocGroup &group, OperationKind kind)
    : group(group), sides(group.members.size()), expected(isMessage(kind) ? 2 : int(group.members.size())) {}

void InprocGroup::end() {
  std::unique_lock<std::mutex> lock(mutex);
  ended = true;
  changed.notify_all();
  changed.wait(lock, [&] { return moving == 0; });
}

void InprocExchange::arrive(int member, const OperationInfo &theirs, const void *in, void *out) {
  if (arrived++ == 0)
    info = theirs;
  differs |= !describeMismatch(theirs, info, 0).empty();
  Side &side = sides[size_t(member)];
  side.info = theirs;
  side.here = true;
  side.in = in;
  side.out = out;
}

std::string InprocExchange::describeMismatchFor(int member) const {
  std::string first;
  for (size_t other = 0; other < sides.size() && first.empty(); ++other)
    if (sides[other].here)
      first = describeMismatch(sides[size_t(member)].info, sides[other].info, group.members[other]);
  return first.empty() ? "members have issued different operations" : first;
}

InprocExchange::Inputs InprocExchange::inputsNow() const {
  Inputs result;
  for (const Side &side : sides)
    result.push_back(side.in);
  return result;
}

int64_t InprocExchange::inputBytes() const {
  int64_t parts = info.kind == OperationKind::ReduceScatter ? expected : 1;
  return info.cut.elements() * parts * byteSize(info.dtype);
}

/// What the member of an operation other than all_reduce gets.
void InprocExchange::takeOwn(int member, const Inputs &inputs) {
  Side &side = sides[size_t(member)];
  switch (info.kind) {
  case OperationKind::AllGather:
    return gatherInto(member, inputs);
  case OperationKind::ReduceScatter:
    return scatterInto(member, inputs);
  case OperationKind::Broadcast:
    if (member != info.root)
      packPart(info.cut, 1, 0, 0, info.cut.local, byteSize(info.dtype), inputs[size_t(info.root)], side.out);
    return;
  case OperationKind::Shift:
    packPart(info.cut, 1, 0, 0, info.cut.local, byteSize(info.dtype),
             inputs[size_t(member + expected - 1) % size_t(expected)], side.out);
    return;
  default: // a message: the sender has no `out`, and of the two sides one has an `in`
    if (side.out)
      for (const void *in : inputs)
        if (in)
          packPart(info.cut, 1, 0, 0, info.cut.local, byteSize(info.dtype), in, side.out);
  }
}

void InprocExchange::gatherInto(int member, const Inputs &inputs) {
  for (int from = 0; from < expected; ++from)
    unpackPart(info.cut, expected, from, 0, info.cut.elements(), byteSize(info.dtype), inputs[size_t(from)],
               sides[size_t(member)].out);
}

void InprocExchange::scatterInto(int member, const Inputs &inputs) {
  int64_t bytes = byteSize(info.dtype);
  forEachRun(info.cut, expected, member, 0, info.cut.elements(), [&](int64_t inWhole, int64_t inPart, int64_t count) {
    std::vector<const void *> sources;
    for (const void *in : inputs)
      sources.push_back(static_cast<const uint8_t *>(in) + inWhole * bytes);
    reduceInOrder(info.dtype, info.op, sources, count,
                  {static_cast<uint8_t *>(sides[size_t(member)].out) + inPart * bytes});
  });
}

/// Sums the member's share of the elements into everyone's result. No other share reads or writes them, so results may
/// be inputs.
void InprocExchange::reduceShare(int member, const Inputs &inputs) {
  int64_t begin = info.cut.local * member / expected, end = info.cut.local * (member + 1) / expected;
  int64_t bytes = byteSize(info.dtype);
  if (begin == end)
    return;
  std::vector<const void *> sources;
  std::vector<void *> results;
  for (size_t other = 0; other < sides.size(); ++other) {
    sources.push_back(static_cast<const uint8_t *>(inputs[other]) + begin * bytes);
    results.push_back(static_cast<uint8_t *>(sides[other].out) + begin * bytes);
  }
  reduceInOrder(info.dtype, info.op, sources, end - begin, results);
}

void InprocExchange::moveShare(int member, const Inputs &inputs) {
  if (info.kind == OperationKind::AllReduce)
    reduceShare(member, inputs);
  else
    takeOwn(member, inputs);
}

/// Runs `move(inputs)`, which touches buffers and takes time.
template <typename Fn> void InprocExchange::withoutLock(std::unique_lock<std::mutex> &lock, Fn &&move) {
  Inputs inputs = inputsNow();
  ++group.moving;
  lock.unlock();
  move(inputs);
  lock.lock();
  --group.moving;
  if (group.ended)
    group.changed.notify_all();
}

void InprocExchange::moveAll(std::unique_lock<std::mutex> &lock, int first) {
  for (size_t step = 0; step < sides.size() && !group.ended; ++step) {
    int member = int((size_t(first) + step) % sides.size());
    Side &side = sides[size_t(member)];
    if (side.taken || !side.here)
      continue;
    side.taken = true;
    withoutLock(lock, [&](const Inputs &inputs) { moveShare(member, inputs); });
    if (++moved == expected)
      group.changed.notify_all();
  }
}

void InprocExchange::moveOwn(std::unique_lock<std::mutex> &lock, int member) {
  Side &side = sides[size_t(member)];
  if (side.taken || group.ended)
    return; // taken: another thread of this rank is at it
  bool reduces = info.kind == OperationKind::AllReduce;
  if (reduces && sumState == Sums::Running)
    return;
  if (reduces && sumState == Sums::None) {
    sumState = Sums::Running;
    withoutLock(lock, [&](const Inputs &inputs) {
      sums.resize(size_t(inputBytes()));
      reduceInOrder(info.dtype, info.op, inputs, info.cut.local, {sums.data()});
    });
    sumState = Sums::Ready;
    group.changed.notify_all();
    if (group.ended)
      return;
  }
  side.taken = true;
  ++readers;
  withoutLock(lock, [&](const Inputs &inputs) {
    if (reduces)
      packPart(info.cut, 1, 0, 0, info.cut.local, byteSize(info.dtype), sums.data(), side.out);
    else
      takeOwn(member, inputs);
  });
  --readers;
  if (++moved < expected && !reduces && side.in) {
    const auto *bytes = static_cast<const uint8_t *>(side.in);
    side.kept.assign(bytes, bytes + inputBytes());
    side.in = side.kept.data();
  }
  group.changed.notify_all();
  // Those who began before may still read the original.
  group.changed.wait(lock, [&] { return readers == 0; });
  side.settled = true;
  group.changed.notify_all();
}

} // namespace drover::rt
