//===- engine.cpp - streams, events and the work on them ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "engine.h"
#include "../standins.h"
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace drover::standin {

static std::atomic<uint32_t> actors{0};

namespace {
struct HostThread {
  uint32_t actor = actors.fetch_add(1);
  uint64_t tick = 0;
  Clock clock;
};
} // namespace

static HostThread &hostThread() {
  static thread_local HostThread thread;
  return thread;
}

/// Never destroyed: the process may end while others still hold streams.
Engine &Engine::instance() {
  static Engine *engine = new Engine;
  return *engine;
}

Engine::Engine() {
  const char *value = std::getenv("DROVER_EMU_SEED");
  setSeed(value ? std::strtoull(value, nullptr, 10) : 0);
}

void Engine::setSeed(uint64_t seed) {
  std::unique_lock<std::mutex> guard(mutex);
  seedValue = seed;
  random.seed(seed);
  if (seed == 0)
    drain(guard);
  // Two, so that kernels of two devices run side by side.
  for (int i = 0; seed != 0 && !hasWorkers && i < 2; ++i)
    std::thread([this] { background(); }).detach();
  hasWorkers |= seed != 0;
}

Clock &Engine::hostClock() { return hostThread().clock; }

Work Engine::hostWork(std::string what, int device) {
  HostThread &thread = hostThread();
  thread.clock.set(thread.actor, ++thread.tick);
  return {std::move(what), thread.actor, thread.tick, thread.clock, device, {}};
}

std::shared_ptr<Stream> Engine::createStream(int device) {
  auto stream = std::make_shared<Stream>();
  stream->device = device;
  stream->actor = actors.fetch_add(1);
  std::lock_guard<std::mutex> guard(mutex);
  streams.push_back(stream);
  return stream;
}

bool Engine::draw(unsigned one) {
  std::lock_guard<std::mutex> guard(mutex);
  return seedValue != 0 && random() % one == 0;
}

uint64_t Engine::drawSeed() {
  std::lock_guard<std::mutex> guard(mutex);
  return random();
}

//===----------------------------------------------------------------------===//
// What the host enqueues
//===----------------------------------------------------------------------===//

void Engine::enqueue(Stream &stream, std::string what, std::function<void(const Work &)> perform, Ready ready) {
  if (keep(stream, what, perform))
    return;
  Work work = hostWork(what + (stream.ofGraph ? ", in a graph" : ""), stream.device);
  std::unique_lock<std::mutex> guard(mutex);
  work.actor = stream.actor;
  work.tick = ++stream.tick;
  stream.items.push_back({std::move(work), std::move(ready), std::move(perform)});
  if (seedValue == 0)
    drain(guard);
}

void Engine::record(Stream &stream, Event &event) {
  if (keepRecord(stream, event))
    return;
  auto record = std::make_shared<Record>();
  {
    std::lock_guard<std::mutex> guard(mutex);
    event.record = record;
  }
  enqueue(stream, "event", [this, record](const Work &work) {
    std::lock_guard<std::mutex> guard(mutex);
    record->clock = work.clock;
    record->done = true;
  });
}

void Engine::waitFor(Stream &stream, const Event &event) {
  if (keepWait(stream, event))
    return;
  std::shared_ptr<Record> record;
  {
    std::lock_guard<std::mutex> guard(mutex);
    record = event.record;
    if (!record) // never recorded: nothing to wait for
      return;
  }
  enqueue(stream, "wait", nullptr, [record](const Stream &, Work &work) {
    if (record->done)
      work.clock.join(record->clock);
    return record->done;
  });
}

bool Engine::isIdle(Stream &stream) {
  std::lock_guard<std::mutex> guard(mutex);
  if (!stream.items.empty() || stream.busy)
    return false;
  hostClock().join(stream.clock);
  return true;
}

bool Engine::isDone(const Event &event) {
  std::lock_guard<std::mutex> guard(mutex);
  if (event.record && !event.record->done)
    return false;
  if (event.record)
    hostClock().join(event.record->clock);
  return true;
}

void Engine::wake() {
  std::unique_lock<std::mutex> guard(mutex);
  if (seedValue == 0)
    drain(guard);
}

//===----------------------------------------------------------------------===//
// Doing it
//===----------------------------------------------------------------------===//

static bool isReady(const Stream &stream, Stream::Item &item) { return !item.ready || item.ready(stream, item.work); }

/// The streams whose first piece of work can go on now.
std::vector<std::shared_ptr<Stream>> Engine::ableStreams() {
  std::vector<std::shared_ptr<Stream>> able;
  uint64_t before;
  do {
    before = progress;
    for (size_t i = 0; i < streams.size(); ++i) {
      Stream &stream = *streams[i];
      if (stream.items.empty() && !stream.busy && streams[i].use_count() == 1) // destroyed by its owner
        streams.erase(streams.begin() + ptrdiff_t(i--));
      else if (!stream.busy && !stream.items.empty() && isReady(stream, stream.items.front()))
        able.push_back(streams[i]);
    }
  } while (able.empty() && progress != before);
  return able;
}

/// Does the first piece of work of a stream drawn among those that can go on.
bool Engine::runOne(std::unique_lock<std::mutex> &guard) {
  std::vector<std::shared_ptr<Stream>> able = ableStreams();
  if (able.empty())
    return false;
  std::shared_ptr<Stream> stream = able[seedValue ? random() % able.size() : 0];
  Stream::Item item = std::move(stream->items.front());
  stream->items.pop_front();
  stream->busy = true;
  stream->clock.join(item.work.clock);
  stream->clock.set(stream->actor, item.work.tick);
  item.work.clock = stream->clock;
  guard.unlock();
  if (item.perform) {
    // One at a time on a device: pieces of work that race must not be a race of this process.
    std::lock_guard<std::mutex> alone(devices[size_t(stream->device) % devices.size()]);
    item.perform(item.work);
  }
  Clock after = std::move(item.work.after);
  item = {}; // what it holds may take the lock when it goes
  guard.lock();
  stream->clock.join(after);
  stream->busy = false;
  return true;
}

void Engine::drain(std::unique_lock<std::mutex> &guard) {
  while (runOne(guard)) {
  }
}

/// How late work is depends on the seed: from next to nothing to milliseconds.
void Engine::background() {
  using std::chrono::microseconds;
  while (true) {
    std::unique_lock<std::mutex> guard(mutex);
    const unsigned latest = std::array<unsigned, 3>{20, 300, 3000}[seedValue % 3];
    bool some = seedValue != 0 && runOne(guard);
    unsigned pause = some ? (random() % 4 == 0 ? unsigned(random() % latest) : 0) : 50;
    guard.unlock();
    // Also gives the threads that enqueue a chance to take the lock.
    std::this_thread::sleep_for(microseconds(pause));
  }
}

} // namespace drover::standin

extern "C" void drover_standin_set_seed(uint64_t seed) { drover::standin::Engine::instance().setSeed(seed); }
