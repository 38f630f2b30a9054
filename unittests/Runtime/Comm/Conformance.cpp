//===- Conformance.cpp - what every backend must do -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "drover/rt/error.h"
#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <stdexcept>

namespace drover::rt::test {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Of magnitudes that differ so much that another order of a sum gives other bits.
static double valueOf(uint32_t seed, int member, int64_t index) {
  uint64_t bits = mix(mix(uint64_t(seed) << 8 | uint64_t(member)) + uint64_t(index));
  double mantissa = double(int64_t(bits >> 12 & 0xffffff) - 0x800000) / 0x800000;
  return mantissa * double(1 << (bits & 15));
}

static void storeValue(std::vector<uint8_t> &bytes, DType dtype, int64_t index, double value) {
  uint8_t *place = bytes.data() + index * byteSize(dtype);
  auto put = [&](auto stored) { std::memcpy(place, &stored, sizeof(stored)); };
  switch (dtype) {
  case DROVER_F32:
    return put(float(value));
  case DROVER_BF16:
    return put(floatToBfloat(float(value)));
  case DROVER_F64:
    return put(value);
  case DROVER_I64:
    return put(int64_t(value * 1e6));
  case DROVER_I32:
    return put(int32_t(value * 1e3));
  case DROVER_F16:
    return put(uint16_t(int64_t(value * 100)));
  default:
    return put(uint8_t(int64_t(value * 10)));
  }
}

/// The input of a member: a part of a gather, the whole else.
static std::vector<uint8_t> inputOf(const TestOperation &operation, int member, int members) {
  int64_t count = operation.cut.elements() * (operation.kind == OperationKind::ReduceScatter ? members : 1);
  std::vector<uint8_t> bytes(size_t(count * byteSize(operation.dtype)));
  for (int64_t i = 0; i < count; ++i)
    storeValue(bytes, operation.dtype, i, valueOf(operation.seed, member, i));
  return bytes;
}

//===----------------------------------------------------------------------===//
// Results by definition
//===----------------------------------------------------------------------===//

/// Where element (outer, i of the part, inner) of a member's part lies in the whole.
static int64_t placeInWhole(const TensorCut &cut, int members, int member, int64_t outer, int64_t i, int64_t inner) {
  int64_t dim = member * cut.local + i;
  if (cut.twoChunk) {
    int64_t chunk = cut.local / 2;
    dim = i < chunk ? member * chunk + i : (2 * members - 1 - member) * chunk + i - chunk;
  }
  return (outer * cut.local * members + dim) * cut.inner + inner;
}

template <typename Fn> static void forEachElement(const TensorCut &cut, Fn &&fn) {
  int64_t index = 0;
  for (int64_t outer = 0; outer < cut.outer; ++outer)
    for (int64_t i = 0; i < cut.local; ++i)
      for (int64_t inner = 0; inner < cut.inner; ++inner)
        fn(outer, i, inner, index++);
}

template <typename T> static T loadAs(const std::vector<uint8_t> &bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + size_t(index) * sizeof(T), sizeof(T));
  return value;
}

/// Reduces element `index` of all inputs, member 0 first, into element `to` of the result.
static void reduceElement(const TestOperation &operation, const std::vector<std::vector<uint8_t>> &inputs,
                          int64_t index, std::vector<uint8_t> &result, int64_t to) {
  auto reduce = [&](auto load, auto store) {
    auto sum = load(inputs[0]);
    for (size_t member = 1; member < inputs.size(); ++member) {
      auto value = load(inputs[member]);
      sum = operation.op == ReduceOp::Sum ? sum + value : std::max(sum, value);
    }
    auto stored = store(sum);
    std::memcpy(result.data() + size_t(to) * sizeof(stored), &stored, sizeof(stored));
  };
  auto same = [](auto value) { return value; };
  if (operation.dtype == DROVER_F32)
    reduce([&](const auto &bytes) { return loadAs<float>(bytes, index); }, same);
  else if (operation.dtype == DROVER_BF16)
    reduce([&](const auto &bytes) { return bfloatToFloat(loadAs<uint16_t>(bytes, index)); },
           [](float value) { return floatToBfloat(value); });
  else if (operation.dtype == DROVER_F64)
    reduce([&](const auto &bytes) { return loadAs<double>(bytes, index); }, same);
  else
    reduce([&](const auto &bytes) { return loadAs<int64_t>(bytes, index); }, same);
}

static std::vector<uint8_t> resultOf(const TestOperation &operation, int member, int members) {
  const TensorCut &cut = operation.cut;
  int64_t bytes = byteSize(operation.dtype);
  std::vector<std::vector<uint8_t>> inputs;
  for (int other = 0; other < members; ++other)
    inputs.push_back(inputOf(operation, other, members));
  bool gathers = operation.kind == OperationKind::AllGather;
  std::vector<uint8_t> result(size_t(cut.elements() * (gathers ? members : 1) * bytes));
  switch (operation.kind) {
  case OperationKind::AllGather:
    for (int other = 0; other < members; ++other)
      forEachElement(cut, [&](int64_t outer, int64_t i, int64_t inner, int64_t index) {
        std::memcpy(result.data() + placeInWhole(cut, members, other, outer, i, inner) * bytes,
                    inputs[size_t(other)].data() + index * bytes, size_t(bytes));
      });
    return result;
  case OperationKind::ReduceScatter:
    forEachElement(cut, [&](int64_t outer, int64_t i, int64_t inner, int64_t index) {
      reduceElement(operation, inputs, placeInWhole(cut, members, member, outer, i, inner), result, index);
    });
    return result;
  case OperationKind::AllReduce:
    for (int64_t i = 0; i < cut.elements(); ++i)
      reduceElement(operation, inputs, i, result, i);
    return result;
  case OperationKind::Shift:
    return inputs[size_t((member + members - 1) % members)];
  default:
    return inputs[size_t(operation.root)];
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {
constexpr size_t guardBytes = 64;
constexpr uint8_t guardValue = 0xa5;

class Runner {
public:
  Runner(World &world, Device *device) : world(world), device(device) {
    if (device)
      world.issueAfter(&device->stream(DROVER_STREAM_COMPUTE));
    for (const auto &[id, members] : conformanceGroups(world.size()))
      groups.push_back(std::binary_search(members.begin(), members.end(), world.rank())
                           ? world.createCommunicator(id, concat("group", id), members)
                           : nullptr);
  }

  void start(const TestOperation &operation);
  /// Waits for the nth of those in flight.
  void finish(size_t index, std::string name);
  void finishAll(const std::string &name) {
    while (!inFlight.empty())
      finish(0, name);
  }
  size_t flying() const { return inFlight.size(); }

  std::map<std::string, uint64_t> checksums;

private:
  struct Flight {
    TestOperation operation;
    Communicator *communicator;
    bool receives;
    std::vector<uint8_t> in, out;     // `out` has guards around it
    DeviceMemory deviceIn, deviceOut; // the same on a device
    Request request;
  };
  uint8_t *onDevice(const std::vector<uint8_t> &bytes, DeviceMemory &memory);
  void fromDevice(const DeviceMemory &memory, std::vector<uint8_t> &bytes);

  World &world;
  Device *device; // null: buffers are the host's
  std::vector<std::unique_ptr<Communicator>> groups;
  std::deque<Flight> inFlight;
};
} // namespace

/// `bytes` on the device, where there is one; complete for what is issued from now on.
uint8_t *Runner::onDevice(const std::vector<uint8_t> &bytes, DeviceMemory &memory) {
  if (!device)
    return const_cast<uint8_t *>(bytes.data());
  memory = device->allocate(std::max<int64_t>(int64_t(bytes.size()), 1));
  device->copy(memory.data(), bytes.data(), int64_t(bytes.size()), device->stream(DROVER_STREAM_COMPUTE));
  return memory.data();
}

void Runner::fromDevice(const DeviceMemory &memory, std::vector<uint8_t> &bytes) {
  if (!device || bytes.empty())
    return;
  Stream &stream = device->stream(DROVER_STREAM_COMPUTE);
  DeviceMemory pinned = device->allocatePinned(int64_t(bytes.size()));
  device->copy(pinned.data(), memory.data(), pinned.size(), stream);
  if (!device->finish(stream, std::chrono::steady_clock::now() + std::chrono::seconds(60)))
    throw std::runtime_error("a copy from the device does not end");
  std::memcpy(bytes.data(), pinned.data(), bytes.size());
}

void Runner::start(const TestOperation &operation) {
  Communicator *communicator = groups[size_t(operation.group)].get();
  if (!communicator)
    return;
  int members = communicator->size(), self = communicator->rank();
  bool message = operation.kind == OperationKind::Send;
  if (message && self != operation.root && self != operation.to)
    return;
  const TensorCut &cut = operation.cut;
  int64_t bytes = byteSize(operation.dtype), part = cut.elements() * bytes;
  Flight &flight = inFlight.emplace_back();
  flight.operation = operation;
  flight.communicator = communicator;
  flight.receives = !message || self == operation.to;
  flight.in = inputOf(operation, self, members);
  size_t outBytes = size_t(operation.kind == OperationKind::AllGather ? part * members : part);
  // In place: a part within the whole of the other side; the larger of the two is `out`.
  bool scatters = operation.kind == OperationKind::ReduceScatter;
  size_t room = operation.inPlace && scatters ? flight.in.size() : outBytes;
  flight.out.assign(room + 2 * guardBytes, guardValue);
  // What the operation finds in `out` beside the guards: its own input.
  auto own = flight.out.begin() + guardBytes;
  if (operation.inPlace && operation.kind == OperationKind::AllGather)
    std::copy(flight.in.begin(), flight.in.end(), own + self * part);
  else if (operation.inPlace || (operation.kind == OperationKind::Broadcast && self == operation.root))
    std::copy(flight.in.begin(), flight.in.end(), own);
  uint8_t *out = onDevice(flight.out, flight.deviceOut) + guardBytes, *in = onDevice(flight.in, flight.deviceIn);
  switch (operation.kind) {
  case OperationKind::AllGather:
    if (operation.inPlace)
      in = out + self * part;
    flight.request = communicator->allGather(in, out, operation.dtype, cut);
    return;
  case OperationKind::ReduceScatter:
    if (operation.inPlace) {
      in = out;
      out += self * part;
    }
    flight.request = communicator->reduceScatter(in, out, operation.dtype, operation.op, cut);
    return;
  case OperationKind::AllReduce:
    if (operation.inPlace)
      in = out;
    flight.request = communicator->allReduce(in, out, cut.elements(), operation.dtype, operation.op);
    return;
  case OperationKind::Shift:
    flight.request = communicator->shift(in, out, cut.elements(), operation.dtype);
    return;
  case OperationKind::Broadcast:
    flight.request = communicator->broadcast(out, cut.elements(), operation.dtype, operation.root);
    return;
  default:
    flight.request = self == operation.root
                         ? communicator->send(in, cut.elements(), operation.dtype, operation.to)
                         : communicator->receive(out, cut.elements(), operation.dtype, operation.root);
  }
}

void Runner::finish(size_t index, std::string name) {
  Flight &flight = inFlight[index];
  // Half of them are waited for by the stream.
  if (device && flight.operation.seed % 2)
    flight.request.waitOn(device->stream(DROVER_STREAM_COMPUTE));
  else
    flight.request.wait();
  fromDevice(flight.deviceIn, flight.in);
  fromDevice(flight.deviceOut, flight.out);
  const TestOperation &operation = flight.operation;
  int members = flight.communicator->size(), self = flight.communicator->rank();
  auto complain = [&](const char *what) {
    throw std::runtime_error(concat("rank ", world.rank(), ", case ", name, ", ", operationName(operation.kind), " of ",
                                    operation.cut.outer, "x", operation.cut.local, "x", operation.cut.inner, " ",
                                    dtypeName(operation.dtype), " in group ", operation.group, ": ", what));
  };
  if (flight.receives) {
    std::vector<uint8_t> expected = resultOf(operation, self, members);
    const uint8_t *out = flight.out.data() + guardBytes;
    if (operation.inPlace && operation.kind == OperationKind::ReduceScatter)
      out += size_t(self) * expected.size();
    if (!expected.empty() && std::memcmp(out, expected.data(), expected.size()) != 0)
      complain("wrong result");
    uint64_t &sum = checksums[name];
    for (size_t i = 0; i < expected.size(); ++i)
      sum = (sum ^ out[i]) * 0x100000001b3;
  }
  auto isGuard = [](uint8_t byte) { return byte == guardValue; };
  if (!std::all_of(flight.out.begin(), flight.out.begin() + guardBytes, isGuard) ||
      !std::all_of(flight.out.end() - guardBytes, flight.out.end(), isGuard))
    complain("written outside the result");
  if (flight.in != inputOf(operation, self, members))
    complain("the input has changed");
  inFlight.erase(inFlight.begin() + int64_t(index));
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

std::vector<std::pair<int, std::vector<int>>> conformanceGroups(int worldSize) {
  std::vector<int> all, even, odd;
  for (int rank = 0; rank < worldSize; ++rank) {
    all.push_back(rank);
    (rank % 2 ? odd : even).push_back(rank);
  }
  // Two groups of one id have no member in common; others overlap in all ways.
  return {{0, all},
          {1, {0, 1}},
          {1, {2, 3}},
          {4, even},
          {4, odd},
          {16, {0, 1, 2}},
          {17, {0, worldSize - 1}},
          {21, {worldSize - 1}}};
}

using NamedOperation = std::pair<std::string, TestOperation>;

static std::vector<NamedOperation> tableOfOperations(int worldSize) {
  const std::vector<TensorCut> cuts = {
      {1, 0, 1, false}, {1, 1, 1, false},  {1, 3, 1, false},    {1, 777, 1, false}, {1, 40001, 1, false},
      {3, 5, 2, false}, {2, 4, 3, true},   {1, 2, 1, true},     {5, 0, 7, true},    {3, 1002, 5, true},
      {7, 1, 1, false}, {1, 6, 501, true}, {2, 131, 67, false},
  };
  const std::vector<DType> all = {DROVER_F32, DROVER_BF16, DROVER_F16, DROVER_F64,
                                  DROVER_I64, DROVER_I32,  DROVER_I8,  DROVER_I1};
  const std::vector<DType> summed = {DROVER_F32, DROVER_BF16, DROVER_F64, DROVER_I64};
  std::vector<NamedOperation> table;
  uint32_t seed = 0;
  auto add = [&](TestOperation operation) {
    operation.seed = ++seed;
    std::string name = concat(operationName(operation.kind), operation.op == ReduceOp::Max ? "-max-" : "-",
                              dtypeName(operation.dtype), operation.inPlace ? "-in-place" : "");
    // Large ones are there for their pieces, which are the same in every group.
    bool large = operation.cut.elements() > 2000;
    size_t groups = large ? 1 : conformanceGroups(worldSize).size();
    if (large && (operation.op == ReduceOp::Max || operation.dtype == DROVER_F16 || operation.dtype > DROVER_F64))
      return;
    for (size_t group = 0; group < groups; ++group) {
      operation.group = int(group);
      table.emplace_back(concat(name, "-g", group), operation);
    }
  };
  for (const TensorCut &cut : cuts) {
    bool inPlaceToo = cut.outer == 1 && !cut.twoChunk;
    for (DType dtype : all)
      for (bool inPlace : {false, true})
        if (!inPlace || inPlaceToo)
          add({0, OperationKind::AllGather, dtype, ReduceOp::Sum, cut, 0, 0, inPlace});
    for (DType dtype : summed)
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
        for (bool inPlace : {false, true}) {
          if (!inPlace || inPlaceToo)
            add({0, OperationKind::ReduceScatter, dtype, op, cut, 0, 0, inPlace});
          add({0, OperationKind::AllReduce, dtype, op, {1, cut.elements(), 1, false}, 0, 0, inPlace});
        }
    for (OperationKind kind : {OperationKind::Broadcast, OperationKind::Shift})
      for (DType dtype : {DROVER_BF16, DROVER_I64, DROVER_I1})
        add({0, kind, dtype, ReduceOp::Sum, {1, cut.elements(), 1, false}, 0, 0, false});
  }
  return table;
}

/// Messages both ways around, several on their way between two ranks.
static std::vector<TestOperation> messages(int worldSize) {
  std::vector<TestOperation> list;
  uint32_t seed = 1000000;
  for (int64_t count : {0, 1, 5, 300, 100000, 2})
    for (int from = 0; from < worldSize; ++from)
      for (int to : {(from + 1) % worldSize, (from + worldSize - 1) % worldSize})
        list.push_back({0,
                        OperationKind::Send,
                        count % 2 ? DROVER_F32 : DROVER_BF16,
                        ReduceOp::Sum,
                        {1, count, 1, false},
                        from,
                        to,
                        false,
                        ++seed});
  return list;
}

/// All kinds in all groups, in one global order.
static std::vector<TestOperation> randomOperations(int worldSize, uint32_t seed, int count) {
  std::mt19937 random(seed);
  auto below = [&](int limit) { return int(random() % uint32_t(limit)); };
  auto groups = conformanceGroups(worldSize);
  std::vector<TestOperation> list;
  for (int i = 0; i < count; ++i) {
    TestOperation operation;
    operation.group = below(int(groups.size()));
    int members = int(groups[size_t(operation.group)].second.size());
    // Shifts and broadcasts need one member only, messages two.
    operation.kind = std::array{OperationKind::AllGather, OperationKind::ReduceScatter, OperationKind::AllReduce,
                                OperationKind::Broadcast, OperationKind::Shift,         OperationKind::Send}[size_t(
        below(members > 1 ? 6 : 5))];
    operation.dtype = std::array{DROVER_F32, DROVER_BF16, DROVER_F64, DROVER_I64}[size_t(below(4))];
    operation.op = below(3) ? ReduceOp::Sum : ReduceOp::Max;
    operation.cut = {1 + below(3), 2 * below(40), 1 + below(9), below(3) == 0};
    if (below(8) == 0)
      operation.cut = {1, 2 * below(20000), 1, false};
    if (operation.kind != OperationKind::AllGather && operation.kind != OperationKind::ReduceScatter)
      operation.cut = {1, operation.cut.elements(), 1, false};
    operation.root = below(members);
    operation.to = (operation.root + 1 + below(std::max(members - 1, 1))) % members;
    operation.seed = seed * 1000 + uint32_t(i);
    list.push_back(operation);
  }
  return list;
}

/// One at a time; many at once, waited for from the last; and any of twelve, each rank in an order of its own.
std::map<std::string, uint64_t> runConformance(World &world, Device *device) {
  Runner runner(world, device);
  for (const auto &[name, operation] : tableOfOperations(world.size())) {
    runner.start(operation);
    runner.finishAll(name);
  }
  for (const TestOperation &operation : messages(world.size()))
    runner.start(operation);
  runner.finishAll("messages");
  for (const TestOperation &operation : randomOperations(world.size(), 1, 100))
    runner.start(operation);
  while (runner.flying())
    runner.finish(runner.flying() - 1, "reversed");
  std::mt19937 random(uint32_t(world.rank()) + 7);
  int index = 0;
  // Checksums depend on the order of waits, so every operation has its own.
  for (const TestOperation &operation : randomOperations(world.size(), 2, 400)) {
    runner.start(operation);
    while (runner.flying() > 12)
      runner.finish(random() % runner.flying(), concat("random-", index));
    ++index;
  }
  runner.finishAll("random-rest");
  return runner.checksums;
}

OperationCounts expectedCounts(int rank, int worldSize) {
  OperationCounts counts;
  auto groups = conformanceGroups(worldSize);
  auto add = [&](const TestOperation &operation) {
    const auto &[id, members] = groups[size_t(operation.group)];
    auto found = std::find(members.begin(), members.end(), rank);
    if (found == members.end())
      return;
    int self = int(found - members.begin()), n = int(members.size());
    OperationKind kind = operation.kind;
    if (kind == OperationKind::Send) {
      if (self != operation.root && self != operation.to)
        return;
      kind = self == operation.root ? OperationKind::Send : OperationKind::Receive;
    }
    int64_t part = operation.cut.elements() * byteSize(operation.dtype);
    OperationCount &count = counts[{id, kind, operation.dtype}];
    ++count.operations;
    bool cuts = kind == OperationKind::AllGather || kind == OperationKind::ReduceScatter;
    count.bytes += cuts ? part * n : part;
    count.sent += cuts ? part * (n - 1) : kind == OperationKind::AllReduce ? 2 * part * (n - 1) / n : part;
  };
  for (const auto &[name, operation] : tableOfOperations(worldSize))
    add(operation);
  for (const TestOperation &operation : messages(worldSize))
    add(operation);
  for (auto [seed, count] : {std::pair(1u, 100), std::pair(2u, 400)})
    for (const TestOperation &operation : randomOperations(worldSize, seed, count))
      add(operation);
  return counts;
}

} // namespace drover::rt::test
