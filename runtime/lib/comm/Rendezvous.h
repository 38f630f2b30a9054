//===- Rendezvous.h - what ranks tell each other before and beside NCCL ---===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Rank 0 has a table of values by key, which all ranks reach by TCP. A key is set once; who asks for one that is not
// there waits. Keys that begin with "note/" are told to every rank at once. It does not need MPI, and is there while
// NCCL hangs.
#ifndef DROVER_RT_LIB_COMM_RENDEZVOUS_H
#define DROVER_RT_LIB_COMM_RENDEZVOUS_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace drover::rt {

/// A frame of the protocol: what, an identity that a reply repeats, a key and a value.
struct RendezvousFrame {
  enum What : uint32_t { Hello, Set, Get, Value, Note, Bye };
  uint32_t what = Hello, id = 0;
  std::string key, value;
};

/// A connected socket, closed with the object.
class RendezvousSocket {
public:
  explicit RendezvousSocket(int descriptor = -1) : descriptor(descriptor) {}
  RendezvousSocket(RendezvousSocket &&other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  RendezvousSocket &operator=(RendezvousSocket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~RendezvousSocket();

  int get() const { return descriptor; }
  /// False where the other side has gone.
  bool send(const RendezvousFrame &frame) const;
  /// Blocks. Nothing where the other side has gone.
  std::optional<RendezvousFrame> receive() const;
  /// Ends a receive of another thread.
  void shutDown() const;

private:
  bool readAll(void *data, size_t bytes) const;
  int descriptor;
};

/// Rank 0's table, served by a thread.
class RendezvousServer {
public:
  /// On `port` of all interfaces; 0: any. Throws Error where it is taken.
  RendezvousServer(int port, int ranks);
  /// Waits at most `patience` for all ranks to say that they leave.
  ~RendezvousServer();

  int port() const { return boundPort; }
  void setPatience(double seconds) { patience = seconds; }

private:
  struct Client {
    RendezvousSocket socket;
    std::string rank; // of its Hello
    bool left = false;
  };
  void serve();
  bool handle(Client &client);
  void set(const std::string &key, const std::string &value);
  void lost(Client &client);

  RendezvousSocket listening;
  int boundPort = 0, ranks;
  std::map<int, Client> clients; // by descriptor
  std::map<std::string, std::string> table;
  std::multimap<std::string, std::pair<int, uint32_t>> waiting; // by key: descriptor, identity
  int pipe[2] = {-1, -1};
  double patience = 10;
  std::mutex mutex; // guards the two
  int gone = 0;
  std::condition_variable changed;
  std::thread thread;
};

/// A rank's connection. Any thread.
class RendezvousClient {
public:
  using NoteHandler = std::function<void(const std::string &key, const std::string &value)>;

  /// Connects, trying again until the deadline. `onNote` is called on a thread of the client. Throws Error.
  RendezvousClient(const std::string &host, int port, int rank, std::chrono::steady_clock::time_point deadline,
                   NoteHandler onNote);
  ~RendezvousClient();

  /// Where the key is set already its value stays.
  void set(const std::string &key, const std::string &value);
  /// Waits until it is set; nothing at the deadline, or where rank 0 has gone or `stop` says so.
  std::optional<std::string> get(const std::string &key, std::chrono::steady_clock::time_point deadline,
                                 const std::function<bool()> &stop = nullptr);
  /// Rank 0 has gone.
  bool isLost() const;

private:
  void read();

  RendezvousSocket socket;
  NoteHandler onNote;
  mutable std::mutex mutex; // guards what follows
  std::condition_variable changed;
  uint32_t lastId = 0;
  std::map<uint32_t, std::optional<std::string>> replies; // of those that are asked for
  bool lostIt = false;
  std::mutex sending;
  std::thread reader;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_RENDEZVOUS_H
