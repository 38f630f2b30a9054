//===- RendezvousTest.cpp - what ranks tell each other --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/Rendezvous.h"
#include "../TestFiles.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace drover::rt;
using namespace drover::rt::test;
using namespace std::chrono_literals;

namespace {

std::chrono::steady_clock::time_point in(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

struct Connected {
  Connected(RendezvousServer &server, int rank)
      : client("localhost", server.port(), rank, in(10s), [this](const std::string &key, const std::string &value) {
          std::lock_guard<std::mutex> lock(mutex);
          notes += key + "=" + value + ";";
        }) {}
  std::string heard() {
    std::lock_guard<std::mutex> lock(mutex);
    return notes;
  }
  std::mutex mutex;
  std::string notes;
  RendezvousClient client;
};

TEST(Rendezvous, AKeyIsSetOnce) {
  RendezvousServer server(0, 2);
  Connected a(server, 0), b(server, 1);
  a.client.set("key", "first");
  EXPECT_EQ(a.client.get("key", in(10s)), "first");
  b.client.set("key", "second");
  EXPECT_EQ(b.client.get("key", in(10s)), "first");
}

TEST(Rendezvous, AGetWaitsForItsKeyUntilTheDeadline) {
  RendezvousServer server(0, 2);
  Connected a(server, 0), b(server, 1);
  EXPECT_EQ(a.client.get("late", in(50ms)), std::nullopt);
  std::thread setter([&] {
    std::this_thread::sleep_for(50ms);
    b.client.set("late", std::string("with a \0 byte", 13));
  });
  EXPECT_EQ(a.client.get("late", in(10s)), std::string("with a \0 byte", 13));
  setter.join();
  EXPECT_EQ(a.client.get("never", in(10s), [] { return true; }), std::nullopt);
}

TEST(Rendezvous, NotesAreToldToAll) {
  RendezvousServer server(0, 2);
  Connected a(server, 0), b(server, 1);
  EXPECT_EQ(b.client.get("nothing", in(20ms)), std::nullopt); // b is there
  a.client.set("note/ended", "0");
  for (int i = 0; i < 500 && (a.heard().empty() || b.heard().empty()); ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(a.heard(), "note/ended=0;");
  EXPECT_EQ(b.heard(), "note/ended=0;");
}

/// As the operating system closes the connection of a process that dies.
TEST(Rendezvous, ARankThatDiesEndsTheOthers) {
  RendezvousServer server(0, 2);
  server.setPatience(0.1);
  Connected a(server, 0);
  {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    RendezvousSocket dies(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(dies.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
    dies.send({RendezvousFrame::Hello, 0, "", "1"});
  }
  for (int i = 0; i < 500 && a.heard().empty(); ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(a.heard().substr(0, 47), "note/ended=1\nits process has ended without a wo");
}

TEST(Rendezvous, APortThatIsTakenIsAnError) {
  RendezvousServer server(0, 0);
  expectError([&] { RendezvousServer other(server.port(), 0); }, "rendezvous: port ");
}

} // namespace
