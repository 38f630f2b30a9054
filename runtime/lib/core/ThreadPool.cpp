//===- ThreadPool.cpp - the threads of a rank -----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/thread_pool.h"

#include <algorithm>

using namespace drover::rt;

namespace {

/// The pool whose loop this thread is running, so that a nested loop stays on its thread.
thread_local const ThreadPool *insideLoopOf = nullptr;

/// Threads of all pools of the process: where they outnumber the cores, spinning takes time from those that work.
std::atomic<int> threadsOfProcess{0};

void relax() { __builtin_ia32_pause(); }

/// About 30 us on current cores: longer than the serial gaps between the loops of a layer, shorter than a tick.
int spinCount() {
  static const int cores = std::max(1u, std::thread::hardware_concurrency());
  return threadsOfProcess.load(std::memory_order_relaxed) <= cores ? 2000 : 0;
}

/// Blocks per thread: enough to even out threads of unequal speed, few enough that claiming costs nothing.
constexpr int64_t blocksPerThread = 8;

} // namespace

ThreadPool::ThreadPool(int threads) : numThreads(std::max(threads, 1)), spans(new Span[std::max(threads, 1)]) {
  threadsOfProcess.fetch_add(numThreads, std::memory_order_relaxed);
  workers.reserve(numThreads - 1);
  for (int worker = 1; worker < numThreads; ++worker)
    workers.emplace_back([this, worker] { workerMain(worker); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(sleepMutex);
    stopping.store(true);
  }
  wakeWorkers.notify_all();
  for (std::thread &worker : workers)
    worker.join();
  threadsOfProcess.fetch_sub(numThreads, std::memory_order_relaxed);
}

void ThreadPool::run(int64_t count, int64_t grain, BlockFn fn, void *context) noexcept {
  if (count <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t blocks = std::min(count / grain, numThreads * blocksPerThread);
  if (numThreads == 1 || blocks < 2 || insideLoopOf == this)
    return fn(context, 0, count);
  std::unique_lock<std::mutex> only(callers, std::try_to_lock);
  if (!only.owns_lock())
    return fn(context, 0, count);

  const int64_t blockSize = (count + blocks - 1) / blocks;
  const int64_t used = (count + blockSize - 1) / blockSize;
  job = {fn, context, count, blockSize};
  for (int thread = 0; thread < numThreads; ++thread) {
    spans[thread].next.store(used * thread / numThreads, std::memory_order_relaxed);
    spans[thread].end = used * (thread + 1) / numThreads;
  }
  publish();
  const ThreadPool *outer = insideLoopOf;
  insideLoopOf = this;
  takeBlocks(0);
  insideLoopOf = outer;
  closeAndWait();
}

void ThreadPool::publish() {
  const uint64_t generation = (state.load(std::memory_order_relaxed) >> 32) + 1;
  state.store(generation << 32);
  // Either this sees the sleeper, or the sleeper, which counts itself first, sees the new generation.
  if (sleepers.load() == 0)
    return;
  {
    std::lock_guard<std::mutex> lock(sleepMutex);
  }
  wakeWorkers.notify_all();
}

/// Workers that did not join in time stay out; only those inside are waited for.
void ThreadPool::closeAndWait() {
  state.fetch_or(closedBit);
  for (int spin = spinCount(); spin > 0; --spin) {
    if ((state.load(std::memory_order_acquire) & countMask) == 0)
      return;
    relax();
  }
  std::unique_lock<std::mutex> lock(sleepMutex);
  callerSleeps.store(true);
  wakeCaller.wait(lock, [&] { return (state.load() & countMask) == 0; });
  callerSleeps.store(false);
}

void ThreadPool::takeBlocks(int self) noexcept {
  for (int step = 0; step < numThreads; ++step) {
    Span &span = spans[(self + step) % numThreads];
    while (true) {
      const int64_t block = span.next.fetch_add(1, std::memory_order_relaxed);
      if (block >= span.end)
        break;
      const int64_t begin = block * job.blockSize;
      job.fn(job.context, begin, std::min(begin + job.blockSize, job.count));
    }
  }
}

void ThreadPool::workerMain(int self) {
  insideLoopOf = this;
  uint64_t seen = 0;
  while (waitForJob(seen)) {
    takeBlocks(self);
    const uint64_t before = state.fetch_sub(1);
    if ((before & closedBit) && (before & countMask) == 1 && callerSleeps.load()) {
      {
        std::lock_guard<std::mutex> lock(sleepMutex);
      }
      wakeCaller.notify_one();
    }
  }
}

/// Joins the next loop that this worker has not seen; false when the pool ends.
bool ThreadPool::waitForJob(uint64_t &seen) {
  int spin = spinCount();
  while (true) {
    uint64_t now = state.load();
    if ((now >> 32) != seen && !(now & closedBit)) {
      if (state.compare_exchange_strong(now, now + 1)) {
        seen = now >> 32;
        return true;
      }
      continue;
    }
    if (stopping.load(std::memory_order_relaxed))
      return false;
    if (spin-- > 0) {
      relax();
      continue;
    }
    std::unique_lock<std::mutex> lock(sleepMutex);
    sleepers.fetch_add(1);
    wakeWorkers.wait(lock, [&] {
      const uint64_t current = state.load();
      return stopping.load() || ((current >> 32) != seen && !(current & closedBit));
    });
    sleepers.fetch_sub(1);
    spin = spinCount();
  }
}

extern "C" void drover_rt_parallel_for(const drover_call *call, drover_kernel_fn kernel, int64_t count, int64_t grain,
                                       void *const *operands) {
  if (!call->pool)
    return count > 0 ? kernel(0, count, operands) : void();
  call->pool->parallelFor(count, grain, [&](int64_t begin, int64_t end) { kernel(begin, end, operands); });
}
