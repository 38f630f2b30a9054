//===- RendezvousServer.cpp - rank 0's table ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/Rendezvous.h"
#include "drover/rt/error.h"
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace drover::rt {

RendezvousServer::RendezvousServer(int port, int ranks) : ranks(ranks) {
  listening = RendezvousSocket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Where there is no IPv6 at all; else both come to the one socket.
  sockaddr_in6 six = {};
  sockaddr_in four = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port = htons(uint16_t(port));
  four.sin_family = AF_INET;
  bool hasSix = listening.get() >= 0;
  if (!hasSix)
    listening = RendezvousSocket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int yes = 1, no = 0;
  ::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (hasSix)
    ::setsockopt(listening.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  const auto *address = hasSix ? reinterpret_cast<const sockaddr *>(&six) : reinterpret_cast<const sockaddr *>(&four);
  socklen_t length = hasSix ? sizeof(six) : sizeof(four);
  if (::bind(listening.get(), address, length) != 0 || ::listen(listening.get(), SOMAXCONN) != 0)
    fail("rendezvous: port ", port, " of rank 0's host: ", std::strerror(errno),
         "; name another in DROVER_RT_RENDEZVOUS=HOST:PORT");
  sockaddr_in6 bound = {};
  socklen_t boundLength = sizeof(bound);
  ::getsockname(listening.get(), reinterpret_cast<sockaddr *>(&bound), &boundLength);
  boundPort = ntohs(bound.sin6_port); // at the same place in both families
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    fail("rendezvous: ", std::strerror(errno));
  thread = std::thread([this] { serve(); });
}

RendezvousServer::~RendezvousServer() {
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::chrono::duration<double>(patience), [&] { return gone >= ranks; });
  }
  char byte = 0;
  (void)!::write(pipe[1], &byte, 1);
  thread.join();
  ::close(pipe[0]);
  ::close(pipe[1]);
}

void RendezvousServer::serve() {
  int poll = ::epoll_create1(EPOLL_CLOEXEC);
  auto watch = [&](int descriptor) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    ::epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
  };
  watch(listening.get());
  watch(pipe[0]);
  while (true) {
    epoll_event events[64];
    int count = ::epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      int descriptor = events[i].data.fd;
      if (descriptor == pipe[0]) {
        ::close(poll);
        return;
      }
      if (descriptor == listening.get()) {
        int accepted = ::accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC);
        if (accepted < 0)
          continue;
        clients[accepted].socket = RendezvousSocket(accepted);
        watch(accepted);
        continue;
      }
      auto client = clients.find(descriptor);
      if (client == clients.end() || handle(client->second))
        continue;
      lost(client->second);
      for (auto entry = waiting.begin(); entry != waiting.end();)
        entry = entry->second.first == descriptor ? waiting.erase(entry) : std::next(entry);
      clients.erase(client);
    }
  }
}

/// False where the client has gone.
bool RendezvousServer::handle(Client &client) {
  std::optional<RendezvousFrame> frame = client.socket.receive();
  if (!frame)
    return false;
  switch (frame->what) {
  case RendezvousFrame::Hello:
    client.rank = frame->value;
    return true;
  case RendezvousFrame::Set:
    set(frame->key, frame->value);
    return true;
  case RendezvousFrame::Get: {
    auto found = table.find(frame->key);
    if (found != table.end())
      return client.socket.send({RendezvousFrame::Value, frame->id, frame->key, found->second});
    waiting.emplace(frame->key, std::pair(client.socket.get(), frame->id));
    return true;
  }
  case RendezvousFrame::Bye:
    client.left = true;
    return true;
  default:
    return false;
  }
}

void RendezvousServer::set(const std::string &key, const std::string &value) {
  if (!table.emplace(key, value).second)
    return;
  auto [first, last] = waiting.equal_range(key);
  for (auto entry = first; entry != last; ++entry)
    clients[entry->second.first].socket.send({RendezvousFrame::Value, entry->second.second, key, value});
  waiting.erase(first, last);
  if (key.rfind("note/", 0) == 0)
    for (auto &[descriptor, client] : clients)
      client.socket.send({RendezvousFrame::Note, 0, key, value});
}

/// A rank that has not said that it leaves has died.
void RendezvousServer::lost(Client &client) {
  if (client.rank.empty())
    return;
  if (!client.left)
    set("note/ended", client.rank +
                          "\nits process has ended without a word: look at its log, and for the kernel's (out of "
                          "memory) or the scheduler's hand");
  std::lock_guard<std::mutex> lock(mutex);
  ++gone;
  changed.notify_all();
}

} // namespace drover::rt
