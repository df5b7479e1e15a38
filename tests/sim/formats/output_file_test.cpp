#include "sim/formats/output_file.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// An empty folder of the test's own, removed with it.
class OutputFile : public ::testing::Test {
 protected:
  fs::path file(const std::string& name) const { return folder_.path() / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

 private:
  ScratchFolder folder_;
};

std::string contents_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// By zlib itself, not by the library that compressed.
std::string gunzipped(const fs::path& path) {
  gzFile in = gzopen(path.c_str(), "rb");
  std::string out;
  char block[4096];
  for (int size = 0; (size = gzread(in, block, sizeof block)) > 0;) {
    out.append(block, static_cast<std::size_t>(size));
  }
  EXPECT_EQ(gzclose(in), Z_OK);
  return out;
}

TEST_F(OutputFile, ReplacesWhatWasThereAndLeavesNothingElse) {
  write_output_file(file("a.json"), "old and longer");
  write_output_file(file("a.json"), "new");
  EXPECT_EQ(contents_of(file("a.json")), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, NameThatEndsInGzIsCompressed) {
  const std::string text(100'000, 'x');
  write_output_file(file("a.json.gz"), text);
  EXPECT_LT(fs::file_size(file("a.json.gz")), text.size() / 50);
  EXPECT_EQ(gunzipped(file("a.json.gz")), text);
}

TEST_F(OutputFile, CompressedDataHoldsNoTimeStamp) {
  const std::string bytes = gzip("text");
  // RFC 1952: bytes 4 to 7 are the modification time; flags in byte 3 announce a name.
  EXPECT_EQ(bytes.substr(3, 5), std::string(5, '\0'));
  EXPECT_EQ(bytes, gzip("text"));
}

TEST_F(OutputFile, MissingFolderIsAnInputErrorThatNamesTheFile) {
  const fs::path path = file("missing") / "a.json";
  try {
    write_output_file(path, "text");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().where, path.string());
    EXPECT_THAT(error.problems().front().what, HasSubstr("No such file or directory"));
  }
}

TEST_F(OutputFile, FolderIsNotAFileToWrite) {
  EXPECT_THROW(write_output_file(file(""), "text"), InputError);
}

TEST_F(OutputFile, DeviceIsWrittenInPlace) {
  write_output_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace tessera
