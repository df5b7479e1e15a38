#include "hw/units/read_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class ReadFile : public testing::Test {
 protected:
  fs::path file(const std::string& content) const { return folder_.write("file", content); }
  /// What is wrong; empty where `path` is read.
  static std::string fault_of(const fs::path& path, std::int64_t limit = kMaxWholeFileBytes) {
    try {
      read_whole_file(path, "hint", limit);
    } catch (const InputError& error) {
      EXPECT_EQ(error.problems().front().where, path.string());
      return error.problems().front().what;
    }
    return "";
  }

  ScratchFolder folder_;
};

TEST_F(ReadFile, AllBytesArrive) {
  const std::string content = std::string(3'000'000, 'x') + std::string("\0\n\xFF", 3);
  EXPECT_EQ(read_whole_file(file(content), ""), content);
  EXPECT_EQ(read_whole_file(file(""), ""), "");
  EXPECT_FALSE(read_whole_file("/proc/self/status", "").empty());  // it says that it is empty
}

TEST_F(ReadFile, TheLimitIsTheLastSizeThatIsRead) {
  constexpr std::int64_t kMib = std::int64_t{1} << 20;
  EXPECT_EQ(fault_of(file(std::string(kMib, 'x')), kMib), "");
  EXPECT_EQ(fault_of(file(std::string(kMib + 1, 'x')), kMib), "is larger than 1 MiB");
  EXPECT_EQ(size_limit_text(kMaxWholeFileBytes), "1 GiB");
}

TEST_F(ReadFile, WhatIsNoFileIsRefusedAndNotOpened) {
  ASSERT_EQ(mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(fault_of(folder_.path() / "pipe"), "cannot be read: it is no regular file");
  EXPECT_EQ(fault_of("/dev/zero"), "cannot be read: it is no regular file");
  EXPECT_EQ(fault_of(folder_.path()), "cannot be read: it is a folder");
  EXPECT_EQ(fault_of(folder_.path() / "none"), "cannot be read: No such file or directory");
}

TEST_F(ReadFile, AFileThatFailsWhileItIsReadIsRefused) {
  EXPECT_EQ(fault_of("/proc/self/mem"), "cannot be read: Input/output error");
}

}  // namespace
}  // namespace tessera
