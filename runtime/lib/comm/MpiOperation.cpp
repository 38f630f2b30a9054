//===- MpiOperation.cpp - one operation in messages -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/MpiOperation.h"
#include "comm/MpiWorld.h"
#include "comm/Parts.h"
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"

namespace drover::rt {

/// Up to this size every member gets all inputs of an all_reduce and sums itself: one round instead of two.
static constexpr int64_t atOnceBytes = 4096;

MpiOperation::MpiOperation(MpiWorld &world, const Communicator &communicator, const OperationInfo &info, const void *in,
                           void *out, uint64_t groupHash)
    : Operation(world, communicator, info), owner(world), in(in), out(out), members(communicator.size()),
      self(communicator.rank()), elementBytes(byteSize(info.dtype)), theirs(size_t(members)),
      arrived(new std::atomic<bool>[size_t(members)]()), received(size_t(members)), packed(size_t(members)) {
  own = {groupHash,           info.sequence,      int32_t(info.kind), int32_t(info.op),
         int32_t(info.dtype), int32_t(info.root), info.cut.twoChunk,  0,
         info.cut.outer,      info.cut.local,     info.cut.inner};
  arrived[size_t(self)].store(true);
}

//===----------------------------------------------------------------------===//
// What the rank's threads ask
//===----------------------------------------------------------------------===//

bool MpiOperation::waitUntil(TimePoint deadline) { return owner.waitFor(*this, deadline); }

std::vector<int> MpiOperation::missing() {
  std::vector<int> ranks;
  for (int member = 0; member < members; ++member)
    if (!arrived[size_t(member)].load(std::memory_order_acquire) && (!isMessage() || member == info.root))
      ranks.push_back(communicator.members()[size_t(member)]);
  return ranks;
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

void MpiOperation::announce(const MpiPort &port) {
  for (int member = 0; member < members; ++member) {
    if (member == self || (isMessage() && member != info.root))
      continue;
    int rank = communicator.members()[size_t(member)];
    int bytes = int(sizeof(MpiHeader));
    if (info.kind != OperationKind::Send) {
      MpiPending pending = {port.mpi.nullRequest, true, member, bytes};
      port.mpi.check(port.mpi.irecv(&theirs[size_t(member)], bytes, port.mpi.byte, rank, tag(0), port.communicator,
                                    &pending.request),
                     "MPI_Irecv");
      headers.push_back(pending);
    }
    if (info.kind != OperationKind::Receive) {
      MpiPending pending = {port.mpi.nullRequest, false, member, bytes};
      port.mpi.check(port.mpi.isend(&own, bytes, port.mpi.byte, rank, tag(0), port.communicator, &pending.request),
                     "MPI_Isend");
      headers.push_back(pending);
    }
  }
}

void MpiOperation::takeHeader(int member) {
  arrived[size_t(member)].store(true, std::memory_order_release);
  const MpiHeader &header = theirs[size_t(member)];
  int rank = communicator.members()[size_t(member)];
  if (!failure.empty())
    return;
  if (header.group != own.group) {
    failure = concat("rank ", rank, " was told another name or other members of it");
    return;
  }
  OperationInfo other{};
  other.kind = OperationKind(header.kind);
  other.op = ReduceOp(header.op);
  other.dtype = DType(header.dtype);
  other.cut = {header.outer, header.local, header.inner, header.twoChunk != 0};
  other.root = header.root;
  other.sequence = header.sequence;
  failure = describeMismatch(info, other, rank);
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

bool MpiOperation::reducesAtOnce() const { return info.cut.local * elementBytes <= atOnceBytes; }

static int64_t ceilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// [begin, end) of what this round is about: elements of a part, or of the whole where it is not cut. What needs no
/// staging goes in one round; post() cuts it into messages.
std::pair<int64_t, int64_t> MpiOperation::pieceOfRound(const MpiPort &port) const {
  int64_t count = info.cut.elements(), piece = count, index = round;
  bool staged =
      info.kind == OperationKind::ReduceScatter || (info.kind == OperationKind::AllGather && !isContiguous(info.cut));
  if (staged)
    piece = std::max<int64_t>(1, port.pieceBytes / elementBytes);
  if (info.kind == OperationKind::AllReduce && !reducesAtOnce()) {
    piece = std::max<int64_t>(1, port.pieceBytes / elementBytes) * members;
    index = round / 2;
  }
  return {std::min(count, index * piece), std::min(count, (index + 1) * piece)};
}

int64_t MpiOperation::numRounds(const MpiPort &port) const {
  int64_t count = info.cut.elements();
  if (count == 0)
    return 0;
  int64_t piece = std::max<int64_t>(1, port.pieceBytes / elementBytes);
  switch (info.kind) {
  case OperationKind::AllGather:
    return isContiguous(info.cut) ? 1 : ceilDiv(count, piece);
  case OperationKind::ReduceScatter:
    return ceilDiv(count, piece);
  case OperationKind::AllReduce:
    return reducesAtOnce() ? 1 : 2 * ceilDiv(count, piece * members);
  default:
    return 1;
  }
}

/// The part of a piece of an all_reduce that `member` sums.
std::pair<int64_t, int64_t> MpiOperation::shareOf(int member, std::pair<int64_t, int64_t> piece) const {
  int64_t length = piece.second - piece.first;
  return {piece.first + length * member / members, piece.first + length * (member + 1) / members};
}

uint8_t *MpiOperation::staging(std::vector<std::vector<uint8_t>> &memory, int member, int64_t bytes) {
  std::vector<uint8_t> &place = memory[size_t(member)];
  if (int64_t(place.size()) < bytes)
    place.resize(size_t(bytes));
  return place.data();
}

void MpiOperation::postRound(const MpiPort &port) {
  auto [begin, end] = pieceOfRound(port);
  int64_t bytes = (end - begin) * elementBytes;
  switch (info.kind) {
  case OperationKind::AllGather:
    return postGather(port, begin, end);
  case OperationKind::ReduceScatter:
    return postScatter(port, begin, end);
  case OperationKind::AllReduce:
    return postReduce(port);
  case OperationKind::Broadcast:
    if (self != info.root)
      return receive(port, info.root, out, bytes);
    for (int member = 0; member < members; ++member)
      if (member != self)
        send(port, member, in, bytes);
    return;
  case OperationKind::Shift:
    if (members == 1) {
      std::copy_n(inAt(begin), bytes, outAt(begin));
      return;
    }
    receive(port, (self + members - 1) % members, out, bytes);
    return send(port, (self + 1) % members, in, bytes);
  case OperationKind::Send:
    return send(port, info.root, in, bytes);
  case OperationKind::Receive:
    return receive(port, info.root, out, bytes);
  }
}

void MpiOperation::finishRound(const MpiPort &port) {
  auto [begin, end] = pieceOfRound(port);
  switch (info.kind) {
  case OperationKind::AllGather:
    return finishGather(begin, end);
  case OperationKind::ReduceScatter:
    return finishScatter(begin, end);
  case OperationKind::AllReduce:
    return finishReduce(port);
  default:
    return;
  }
}

void MpiOperation::postGather(const MpiPort &port, int64_t begin, int64_t end) {
  int64_t bytes = (end - begin) * elementBytes;
  for (int member = 0; member < members; ++member) {
    if (member == self)
      continue;
    receive(port, member,
            isContiguous(info.cut) ? outAt(member * info.cut.elements() + begin) : staging(received, member, bytes),
            bytes);
    send(port, member, inAt(begin), bytes);
  }
}

void MpiOperation::finishGather(int64_t begin, int64_t end) {
  for (int member = 0; member < members; ++member)
    if (member == self)
      unpackPart(info.cut, members, member, begin, end, elementBytes, inAt(begin), out);
    else if (!isContiguous(info.cut))
      unpackPart(info.cut, members, member, begin, end, elementBytes, received[size_t(member)].data(), out);
}

void MpiOperation::postScatter(const MpiPort &port, int64_t begin, int64_t end) {
  int64_t bytes = (end - begin) * elementBytes;
  for (int member = 0; member < members; ++member) {
    if (!isContiguous(info.cut))
      packPart(info.cut, members, member, begin, end, elementBytes, in, staging(packed, member, bytes));
    if (member == self)
      continue;
    receive(port, member, staging(received, member, bytes), bytes);
    send(port, member,
         isContiguous(info.cut) ? inAt(member * info.cut.elements() + begin) : packed[size_t(member)].data(), bytes);
  }
}

void MpiOperation::finishScatter(int64_t begin, int64_t end) {
  std::vector<const void *> sources;
  for (int member = 0; member < members; ++member)
    if (member != self)
      sources.push_back(received[size_t(member)].data());
    else if (isContiguous(info.cut))
      sources.push_back(inAt(member * info.cut.elements() + begin));
    else
      sources.push_back(packed[size_t(member)].data());
  reduceInOrder(info.dtype, info.op, sources, end - begin, {outAt(begin)});
}

/// A piece takes two rounds: every member sums its share of it, then the shares are gathered.
void MpiOperation::postReduce(const MpiPort &port) {
  std::pair<int64_t, int64_t> piece = pieceOfRound(port);
  auto [ownBegin, ownEnd] = shareOf(self, piece);
  for (int member = 0; member < members; ++member) {
    if (member == self)
      continue;
    if (reducesAtOnce()) {
      int64_t bytes = info.cut.local * elementBytes;
      receive(port, member, staging(received, member, bytes), bytes);
      send(port, member, in, bytes);
      continue;
    }
    auto [begin, end] = shareOf(member, piece);
    int64_t bytes = (end - begin) * elementBytes, ownBytes = (ownEnd - ownBegin) * elementBytes;
    if (round % 2 == 0) {
      receive(port, member, staging(received, member, ownBytes), ownBytes);
      send(port, member, inAt(begin), bytes);
    } else {
      receive(port, member, outAt(begin), bytes);
      send(port, member, outAt(ownBegin), ownBytes);
    }
  }
}

void MpiOperation::finishReduce(const MpiPort &port) {
  bool atOnce = reducesAtOnce();
  if (!atOnce && round % 2 == 1)
    return;
  std::pair<int64_t, int64_t> piece = pieceOfRound(port);
  auto [begin, end] = atOnce ? piece : shareOf(self, piece);
  std::vector<const void *> sources;
  for (int member = 0; member < members; ++member)
    sources.push_back(member == self ? inAt(begin) : received[size_t(member)].data());
  reduceInOrder(info.dtype, info.op, sources, end - begin, {outAt(begin)});
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void MpiOperation::post(const MpiPort &port, bool receives, int member, void *buffer, int64_t bytes) {
  auto *place = static_cast<uint8_t *>(buffer);
  int rank = communicator.members()[size_t(member)];
  for (int64_t begin = 0; begin < bytes; begin += port.messageBytes) {
    int64_t size = std::min(port.messageBytes, bytes - begin);
    MpiPending pending = {port.mpi.nullRequest, receives, member, size};
    if (receives)
      port.mpi.check(
          port.mpi.irecv(place + begin, int(size), port.mpi.byte, rank, tag(1), port.communicator, &pending.request),
          "MPI_Irecv");
    else
      port.mpi.check(
          port.mpi.isend(place + begin, int(size), port.mpi.byte, rank, tag(1), port.communicator, &pending.request),
          "MPI_Isend");
    data.push_back(pending);
  }
}

/// Takes those out that are complete; true where there was one.
bool MpiOperation::testAll(const MpiPort &port, std::vector<MpiPending> &pending) {
  bool isHeader = &pending == &headers;
  size_t kept = 0;
  for (size_t i = 0; i < pending.size(); ++i) {
    MpiStatus status;
    int done = 0;
    int code = port.mpi.test(&pending[i].request, &done, &status);
    if (code != 0 && dataFailure.empty())
      dataFailure = concat("mpi: ", port.mpi.describe(code));
    if (code == 0 && !done) {
      pending[kept++] = pending[i];
      continue;
    }
    int count = 0;
    if (code == 0 && pending[i].receives && dataFailure.empty())
      if (port.mpi.getCount(&status, port.mpi.byte, &count) != 0 || count != pending[i].bytes)
        dataFailure = concat("mpi: ", count, " bytes arrived from rank ",
                             communicator.members()[size_t(pending[i].member)], ", expected ", pending[i].bytes);
    if (code == 0 && isHeader && pending[i].receives)
      takeHeader(pending[i].member);
  }
  bool some = kept < pending.size();
  pending.resize(kept);
  return some;
}

bool MpiOperation::advance(const MpiPort &port, bool first) {
  bool moved = !headers.empty() && testAll(port, headers);
  while (first && !dataEnded && failure.empty() && dataFailure.empty()) {
    if (!roundOpen) {
      if (round == numRounds(port)) {
        dataEnded = true;
        moved = true;
        break;
      }
      postRound(port);
      roundOpen = true;
    }
    moved |= testAll(port, data);
    if (!data.empty() || !dataFailure.empty())
      break;
    finishRound(port);
    ++round;
    roundOpen = false;
    moved = true;
  }
  // Where members disagree, messages fail to fit: the headers, on their way too, tell it better.
  if (failure.empty() && !dataFailure.empty() && headers.empty())
    failure = dataFailure;
  return moved;
}

void MpiOperation::cancel(const MpiPort &port) {
  for (std::vector<MpiPending> *list : {&headers, &data})
    for (MpiPending &pending : *list) {
      if (!pending.receives)
        continue; // it reads the buffer of a rank that is about to end
      int done = 0;
      MpiStatus status;
      if (port.mpi.cancel(&pending.request) == 0)
        for (int attempt = 0; attempt < 1000 && !done; ++attempt)
          if (port.mpi.test(&pending.request, &done, &status) != 0)
            break;
    }
}

} // namespace drover::rt
