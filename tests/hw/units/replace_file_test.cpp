#include "hw/units/replace_file.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(ReplaceFile, LeavesTheNewContentsAndNothingElse) {
  const ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  replace_file(folder / "a", "old, and longer");
  replace_file(folder / "a", "new");
  EXPECT_EQ(text_of(folder / "a"), "new");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(ReplaceFile, AFailureLeavesNothingAndNamesTheFile) {
  const ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  try {
    replace_file(folder / "missing" / "a", "text");
    FAIL() << "written";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr((folder / "missing" / "a").string()));
    EXPECT_THAT(error.what(), testing::HasSubstr("No such file or directory"));
  }
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(ReplaceFile, AFolderIsNotReplaced) {
  const ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  EXPECT_THROW(replace_file(folder, "text"), InputError);
  EXPECT_TRUE(fs::is_directory(folder));
}

TEST(ReplaceFile, ADeviceIsWrittenInPlace) {
  replace_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

/// Ends the process in the middle of a write: the file outgrows the limit, whose signal cleans up.
[[noreturn]] void write_beyond_the_limit(const fs::path& file) {
  std::signal(SIGXFSZ, [](int) {
    remove_unfinished_file();
    std::_Exit(130);
  });
  const rlimit limit{.rlim_cur = 100'000, .rlim_max = 100'000};
  setrlimit(RLIMIT_FSIZE, &limit);
  replace_file(file, std::string(1'000'000, 'x'));
  std::_Exit(0);
}

TEST(ReplaceFile, AnInterruptedWriteLeavesNothing) {
  const ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  EXPECT_EXIT(write_beyond_the_limit(folder / "a"), testing::ExitedWithCode(130), "");
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(ReplaceFile, NothingIsUnfinishedAfterwards) {
  const ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  replace_file(folder / "a", "text");
  remove_unfinished_file();
  EXPECT_EQ(text_of(folder / "a"), "text");
}

}  // namespace
}  // namespace tessera
