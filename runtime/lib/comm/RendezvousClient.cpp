//===- RendezvousClient.cpp - a rank's connection to the table ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/Rendezvous.h"
#include "drover/rt/error.h"
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace drover::rt {

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

static constexpr uint32_t largestFrame = 64 << 20; // beyond that it is another protocol that talks

RendezvousSocket::~RendezvousSocket() {
  if (descriptor >= 0)
    ::close(descriptor);
}

void RendezvousSocket::shutDown() const { ::shutdown(descriptor, SHUT_RDWR); }

bool RendezvousSocket::send(const RendezvousFrame &frame) const {
  uint32_t header[4] = {frame.what, frame.id, uint32_t(frame.key.size()), uint32_t(frame.value.size())};
  std::string bytes(reinterpret_cast<const char *>(header), sizeof(header));
  bytes += frame.key + frame.value;
  for (size_t done = 0; done < bytes.size();) {
    ssize_t count = ::send(descriptor, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    done += size_t(count);
  }
  return true;
}

bool RendezvousSocket::readAll(void *data, size_t bytes) const {
  for (size_t done = 0; done < bytes;) {
    ssize_t count = ::recv(descriptor, static_cast<char *>(data) + done, bytes - done, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    done += size_t(count);
  }
  return true;
}

std::optional<RendezvousFrame> RendezvousSocket::receive() const {
  uint32_t header[4];
  if (!readAll(header, sizeof(header)) || header[2] > largestFrame || header[3] > largestFrame)
    return std::nullopt;
  RendezvousFrame frame;
  frame.what = header[0];
  frame.id = header[1];
  frame.key.resize(header[2]);
  frame.value.resize(header[3]);
  if (!readAll(frame.key.data(), header[2]) || !readAll(frame.value.data(), header[3]))
    return std::nullopt;
  return frame;
}

//===----------------------------------------------------------------------===//
// Client
//===----------------------------------------------------------------------===//

/// -1 and the reason where it cannot be reached now.
static int connectOnce(const std::string &host, int port, std::string &reason) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    reason = ::gai_strerror(code);
    return -1;
  }
  int descriptor = -1;
  for (const addrinfo *address = found; address && descriptor < 0; address = address->ai_next) {
    descriptor = ::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (descriptor >= 0 && ::connect(descriptor, address->ai_addr, address->ai_addrlen) == 0)
      break;
    reason = std::strerror(errno);
    if (descriptor >= 0)
      ::close(descriptor);
    descriptor = -1;
  }
  ::freeaddrinfo(found);
  int yes = 1;
  if (descriptor >= 0)
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return descriptor;
}

RendezvousClient::RendezvousClient(const std::string &host, int port, int rank,
                                   std::chrono::steady_clock::time_point deadline, NoteHandler onNote)
    : onNote(std::move(onNote)) {
  std::string reason;
  int descriptor;
  while ((descriptor = connectOnce(host, port, reason)) < 0) {
    if (std::chrono::steady_clock::now() >= deadline)
      fail("rendezvous: rank ", rank, " cannot reach rank 0 at ", host, ":", port, ": ", reason,
           "; is rank 0 running, is its name right, and does a firewall let the port through? "
           "DROVER_RT_RENDEZVOUS=HOST:PORT names another address on all ranks");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  socket = RendezvousSocket(descriptor);
  socket.send({RendezvousFrame::Hello, 0, "", std::to_string(rank)});
  reader = std::thread([this] { read(); });
}

RendezvousClient::~RendezvousClient() {
  {
    std::lock_guard<std::mutex> lock(sending);
    socket.send({RendezvousFrame::Bye, 0, "", ""});
  }
  socket.shutDown();
  reader.join();
}

void RendezvousClient::read() {
  while (std::optional<RendezvousFrame> frame = socket.receive()) {
    if (frame->what == RendezvousFrame::Note) {
      onNote(frame->key, frame->value);
      continue;
    }
    std::lock_guard<std::mutex> lock(mutex);
    auto asked = replies.find(frame->id);
    if (asked != replies.end()) // else whoever asked has given up
      asked->second = std::move(frame->value);
    changed.notify_all();
  }
  std::lock_guard<std::mutex> lock(mutex);
  lostIt = true;
  changed.notify_all();
}

void RendezvousClient::set(const std::string &key, const std::string &value) {
  std::lock_guard<std::mutex> lock(sending);
  socket.send({RendezvousFrame::Set, 0, key, value});
}

std::optional<std::string> RendezvousClient::get(const std::string &key, std::chrono::steady_clock::time_point deadline,
                                                 const std::function<bool()> &stop) {
  uint32_t id;
  {
    std::lock_guard<std::mutex> lock(mutex);
    id = ++lastId;
    replies[id];
  }
  {
    std::lock_guard<std::mutex> lock(sending);
    socket.send({RendezvousFrame::Get, id, key, ""});
  }
  std::unique_lock<std::mutex> lock(mutex);
  while (!replies[id] && !lostIt && std::chrono::steady_clock::now() < deadline && !(stop && stop()))
    changed.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(50)));
  std::optional<std::string> value = std::move(replies[id]);
  replies.erase(id);
  return value;
}

bool RendezvousClient::isLost() const {
  std::lock_guard<std::mutex> lock(mutex);
  return lostIt;
}

} // namespace drover::rt
