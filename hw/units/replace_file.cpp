#include "hw/units/replace_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <string>
#include <system_error>

#include <unistd.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Path of the temporary file that is being written; empty between writes. A signal handler may
/// read nothing else.
std::array<char, PATH_MAX> unfinished{};

class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path) {
    if (path.size() < unfinished.size()) std::copy(path.begin(), path.end(), unfinished.begin());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile() { unfinished.fill('\0'); }
};

[[noreturn]] void throw_unwritable(const fs::path& path, const std::string& reason) {
  throw InputError(Problem{.where = path.string(),
                           .what = "cannot be written: " + reason,
                           .hint = "name a file in a folder that exists and that you may write"});
}

std::error_code write_all(const fs::path& path, std::string_view contents) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  return out.fail() ? std::error_code(errno, std::generic_category()) : std::error_code();
}

/// A rename would replace /dev/stdout instead of writing to it.
bool is_special_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

std::error_code write_and_rename(const fs::path& path, std::string_view contents) {
  const std::string temporary = path.string() + ".tmp" + std::to_string(getpid());
  const UnfinishedFile guard(temporary);
  std::error_code failure = write_all(temporary, contents);
  if (!failure) fs::rename(temporary, path, failure);
  std::error_code ignored;
  if (failure) fs::remove(temporary, ignored);
  return failure;
}

}  // namespace

void replace_file(const fs::path& path, std::string_view contents) {
  std::error_code ignored;  // writing says what is wrong
  if (fs::is_directory(path, ignored)) throw_unwritable(path, "it is a directory");
  const std::error_code failure =
      is_special_file(path) ? write_all(path, contents) : write_and_rename(path, contents);
  if (failure) throw_unwritable(path, failure.message());
}

void remove_unfinished_file() noexcept {
  if (unfinished.front() != '\0') unlink(unfinished.data());
}

}  // namespace tessera
