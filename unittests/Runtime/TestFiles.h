//===- TestFiles.h - files that tests make ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_TESTFILES_H
#define DROVER_UNITTESTS_RUNTIME_TESTFILES_H

#include "drover/rt/error.h"
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace drover::rt::test {

/// A folder that goes away with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    // In memory where there is such a place: tests that mutate files make thousands.
    std::filesystem::path parent =
        ::access("/dev/shm", W_OK) == 0 ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (parent / "drover-test-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("no temporary folder");
    root = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  std::string path(const std::string &name) const { return root + "/" + name; }

  std::string write(const std::string &name, const std::string &content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

private:
  std::string root;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The bytes of values, for the content of a file.
template <typename T> std::string bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}
template <typename T> std::string bytesOf(T value) { return bytesOf(std::vector<T>{value}); }

/// Expects an Error whose text contains `part`.
template <typename Fn> void expectError(Fn &&fn, const std::string &part) {
  try {
    fn();
    ADD_FAILURE() << "expected an error with: " << part;
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "got: " << error.what() << "\nexpected: " << part;
  }
}

/// Gives `read` mutants of a good file: up to three times a byte is changed, some are dropped, the rest is cut off or
/// one of `inserted` comes in. Each is read or refused with an Error, nothing worse; returns how many were read.
template <typename Fn>
int64_t readMutants(const std::string &good, std::string_view inserted, int rounds, unsigned seed, Fn &&read) {
  std::mt19937 random(seed);
  int64_t accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string bad = good;
    for (int changes = 1 + int(random() % 3); changes && !bad.empty(); --changes) {
      size_t place = random() % bad.size();
      switch (random() % 4) {
      case 0:
        bad[place] = char(random());
        break;
      case 1:
        bad.erase(place, random() % 4);
        break;
      case 2:
        bad.resize(place + 1);
        break;
      default:
        bad.insert(place, 1, inserted[random() % inserted.size()]);
      }
    }
    try {
      read(bad);
      ++accepted;
    } catch (const Error &) {
    }
  }
  return accepted;
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_TESTFILES_H
