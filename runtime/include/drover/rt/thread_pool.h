//===- thread_pool.h - the threads of a rank --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_THREAD_POOL_H
#define DROVER_RT_THREAD_POOL_H

#include "drover/rt/abi.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace drover::rt {

/// A fixed set of threads that run loops over index ranges. The calling thread takes part, so a pool of one has no
/// thread of its own. A loop started from inside a loop, or while another thread's loop runs, runs on its caller alone.
class ThreadPool {
public:
  /// Where `threads` is below 1, one thread is used.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return numThreads; }

  /// Calls fn(begin, end) for disjoint blocks that cover [0, count), each of at least `grain` indices (but for a range
  /// shorter than that). Returns when all are done. Which thread runs a block is not fixed, nor is the cut: fn must
  /// give the same result for any. An exception that leaves fn ends the process.
  template <typename Fn> void parallelFor(int64_t count, int64_t grain, Fn &&fn) {
    using Callable = std::remove_reference_t<Fn>;
    run(
        count, grain,
        [](void *context, int64_t begin, int64_t end) noexcept { (*static_cast<Callable *>(context))(begin, end); },
        const_cast<void *>(static_cast<const void *>(&fn)));
  }

private:
  using BlockFn = void (*)(void *context, int64_t begin, int64_t end) noexcept;

  /// The blocks [next, end) that a thread takes first; the others help when theirs are done.
  struct alignas(64) Span {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  /// What a loop is made of; written by the caller before the loop is published, read by those who joined it.
  struct Job {
    BlockFn fn = nullptr;
    void *context = nullptr;
    int64_t count = 0;
    int64_t blockSize = 0;
  };

  void run(int64_t count, int64_t grain, BlockFn fn, void *context) noexcept;
  void publish();
  void closeAndWait();
  void takeBlocks(int self) noexcept;
  void workerMain(int self);
  bool waitForJob(uint64_t &seen);

  int numThreads;
  Job job;
  std::unique_ptr<Span[]> spans;
  std::mutex callers; // one loop at a time

  /// generation << 32 | closed << 31 | workers inside. A worker joins by raising the count while `closed` is clear.
  alignas(64) std::atomic<uint64_t> state{closedBit};
  std::atomic<int> sleepers{0};
  std::atomic<bool> callerSleeps{false};
  std::atomic<bool> stopping{false};
  std::mutex sleepMutex;
  std::condition_variable wakeWorkers;
  std::condition_variable wakeCaller;
  std::vector<std::thread> workers;

  static constexpr uint64_t closedBit = uint64_t(1) << 31;
  static constexpr uint64_t countMask = closedBit - 1;
};

} // namespace drover::rt

/// The pool as compiled code hands it on.
struct drover_pool final : drover::rt::ThreadPool {
  using ThreadPool::ThreadPool;
};

#endif // DROVER_RT_THREAD_POOL_H
