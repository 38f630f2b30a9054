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
#include <string>
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

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_TESTFILES_H
