//===- machine.h - one block of a kernel at work ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_MACHINE_H
#define DROVER_EMULATION_MACHINE_H

#include "../emu.h"
#include "fiber.h"
#include "shadow.h"
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace drover::emu {

constexpr unsigned warpSize = 32;
constexpr unsigned maxThreads = 1024;
constexpr size_t maxSharedBytes = 227 << 10; // of a block on compute capability 9.0 (CUDA guide, table of limits)

/// One cp.async that has been issued and whose data has not arrived.
struct AsyncCopy {
  char *destination;
  const char *source;
  uint32_t bytes, copied;
};

/// A wgmma that some thread has not waited for.
struct Product {
  std::vector<uint32_t> chunks; // of shared memory that it reads, by number
  unsigned waiting;             // threads
};

/// A thread's sums of products, from the first one that writes them until they are settled.
struct Sums {
  std::vector<float> values;
  unsigned inFlight = 0; // products that add to them
};

/// One thread of the block.
struct Thread {
  enum State { Ready, InWarpOperation, AtBarrier, Done };
  Fiber fiber;
  State state = Ready;
  uint32_t site = 0; // where it waits
  std::vector<AsyncCopy> issued;
  std::deque<std::vector<AsyncCopy>> groups;

  // wgmma: products with the number of the sums that they add to.
  using IssuedProduct = std::pair<std::shared_ptr<Product>, uint32_t>;
  std::vector<IssuedProduct> issuedProducts;
  std::deque<std::vector<IssuedProduct>> productGroups;
  std::map<uint32_t, Sums> sums;
  uint32_t lastSums = 0;
  bool registersFenced = false;      // no register of sums was touched since wgmma.fence
  std::vector<uint32_t> proxyFences; // in which epoch each was
};

/// All 128 threads of a warpgroup at one wgmma.
struct WarpgroupGathering {
  unsigned arrived = 0;
  uint32_t site = 0;
  void *slots[128];
};

/// The last write to 4 bytes of shared memory that was none of the asynchronous proxy.
struct GenericWrite {
  uint32_t fences = 0; // fences of the proxy that the thread had made by then
  uint16_t thread = 0;
  bool written = false;
};

/// A warp-wide operation that some lanes have reached. Slots lie on the lanes' stacks.
struct Gathering {
  uint32_t mask, arrived;
  int kind;
  uint32_t site;
  void *slots[warpSize];
};

struct Warp {
  uint32_t live = 0;  // lanes that have not returned
  uint32_t epoch = 0; // barriers of this warp
  std::vector<Gathering> gatherings;
};

/// A pointer argument of the launch.
struct Region {
  char *base = nullptr;
  uint64_t extent = 0;
  uint32_t flags = 0;
  std::shared_ptr<Shadow> shadow; // null: no device memory
  char *touchedFrom = nullptr, *touchedTo = nullptr;

  bool holds(const char *at, size_t bytes) const {
    return at >= base && bytes <= extent && uint64_t(at - base) <= extent - bytes;
  }
};

/// Runs launches, block by block, on the calling thread. One per thread of the CPU, kept for its stacks.
class Machine {
public:
  Machine();
  uint64_t run(const drover_emu_kernel &kernel, const drover_emu_launch &launch, void **arguments);

  // What a kernel's thread does; see hooks.h.
  void *access(void *address, uint32_t bytes, uint32_t flags, uint32_t alignment, int32_t argument, uint32_t site);
  void barrier(uint32_t site);
  /// Waits until all lanes of `mask` are here with the same kind of operation; the last one to come runs `combine`,
  /// which sees every lane's slot. Does not return after a fault.
  void collective(uint32_t mask, int kind, uint32_t site, void *slot, void (*combine)(Machine &, Gathering &));
  void advanceWarp(uint32_t mask);
  void issueCopy(char *destination, const char *source, uint32_t bytes, uint32_t copied, int32_t argument,
                 uint32_t site);
  void commitCopies();
  void waitForCopies(uint32_t pending);
  void fenceProxy() { threads[current]->proxyFences.push_back(epoch); }
  void fenceRegisters() { threads[current]->registersFenced = true; }
  void issueProduct(uint32_t *registers, uint64_t a, uint64_t b, uint32_t n, uint32_t flags, uint32_t site);
  void commitProducts();
  void waitForProducts(uint32_t pending);
  void settle(uint32_t *registers, uint32_t count, uint32_t site);
  /// An access to shared memory by any thread of the current warp, as ldmatrix makes them.
  void *sharedAccess(char *at, uint32_t bytes, uint32_t flags, unsigned thread, uint32_t site);

  void addFlops(uint32_t count) { counted.flops += count; }
  uint32_t registerValue(uint32_t which) const;
  char *sharedBase() const { return sharedMemory.get(); }
  unsigned currentThread() const { return current; }

private:
  void resolveArguments(void **arguments);
  void runBlock(drover_emu_dim at);
  void startThreads();
  static void threadMain();
  void threadEnded();
  [[noreturn]] void abandonBlock();
  void yield();
  unsigned takeReady();
  void releaseBarrier();
  void reportTouched();

  void *globalAccess(char *at, uint32_t bytes, uint32_t flags, int32_t argument, uint32_t site);
  Region *findRegion(const char *at, uint32_t bytes, bool write);
  void checkOrder(Cell &cell, uint32_t flags, unsigned thread, bool shared, const void *at, uint32_t site);
  void checkCells(Shadow &shadow, size_t offset, uint32_t bytes, uint32_t flags, unsigned thread, bool shared,
                  uint32_t site);
  /// What `thread` does now.
  Stamp stampOf(unsigned thread) const;
  bool ordered(const Stamp &stamp, unsigned thread, uint32_t since) const;
  struct ProductSlot;
  class Matrix;
  void multiply(WarpgroupGathering &all);
  Sums &sumsOf(ProductSlot &slot, uint32_t site);
  void checkProxy(size_t offset, uint32_t bytes, uint32_t site);
  void noteGenericWrite(size_t offset, uint32_t bytes, unsigned thread);
  void *faultPlace(bool write);
  void fault(const char *check, uint32_t site, int thread, const void *at, const std::string &what);
  void deadlock();
  uint64_t random();

  // The launch.
  const drover_emu_kernel *kernel = nullptr;
  const drover_emu_launch *launch = nullptr;
  void **arguments = nullptr;
  std::vector<Region> regions;
  uint32_t checks = 0;
  uint64_t faults = 0;
  uint32_t launchEpoch = 0; // stamps from here on belong to this launch
  uint64_t randomState = 1;

  // The block.
  drover_emu_dim block = {0, 0, 0};
  unsigned threadCount = 0, liveThreads = 0, current = 0;
  uint32_t blockEpoch = 0, epoch = 0;
  unsigned atBarrier = 0;
  uint32_t barrierSite = 0;
  bool abandoned = false;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::vector<uint16_t> ready;
  Fiber main;

  struct Free {
    void operator()(char *memory) const;
  };
  std::unique_ptr<char, Free> sharedMemory;
  size_t sharedBytes = 0;
  Shadow sharedShadow;
  ByteSet inFlight; // bytes of shared memory that a cp.async will write
  static constexpr size_t chunkBytes = 16;
  std::vector<uint16_t> chunkReads = std::vector<uint16_t>(maxSharedBytes / chunkBytes); // of products in flight
  std::vector<GenericWrite> genericWrites = std::vector<GenericWrite>(maxSharedBytes / 4);
  std::vector<WarpgroupGathering> warpgroups;
  alignas(16) char scratch[2][256];
  drover_emu_counters counted = {};
};

/// The machine whose kernel this thread of the CPU runs.
extern thread_local Machine *running __attribute__((tls_model("initial-exec")));

} // namespace drover::emu

#endif // DROVER_EMULATION_MACHINE_H
