#include "hw/units/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what,
                         const std::string& hint) {
  throw InputError(Problem{file.string(), what, hint});
}

[[noreturn]] void refuse_unreadable(const std::filesystem::path& file, int error,
                                    const std::string& hint) {
  refuse(file, "cannot be read: " + std::generic_category().message(error), hint);
}

/// A file that is open for reading.
class OpenFile {
 public:
  OpenFile(const std::filesystem::path& file, const std::string& hint)
      : descriptor_(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) refuse_unreadable(file, errno, hint);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(descriptor_); }

  /// Appends what comes next, up to `size` bytes; false at the end.
  bool append(std::string& content, std::size_t size, const std::filesystem::path& file,
              const std::string& hint) const {
    const std::size_t before = content.size();
    content.resize(before + size);
    const ssize_t count = read(descriptor_, content.data() + before, size);
    if (count < 0 && errno != EINTR) refuse_unreadable(file, errno, hint);
    content.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return count != 0;
  }

 private:
  int descriptor_;
};

}  // namespace

void check_is_file(const std::filesystem::path& file, const std::string& hint) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) refuse_unreadable(file, errno, hint);
  if (S_ISREG(status.st_mode)) return;
  const bool folder = S_ISDIR(status.st_mode);
  refuse(file, folder ? "cannot be read: it is a folder" : "cannot be read: it is no regular file",
         folder ? hint : hint + "; devices and pipes are not read");
}

std::string read_whole_file(const std::filesystem::path& file, const std::string& hint,
                            std::int64_t limit) {
  check_is_file(file, hint);  // ahead of opening it: to open a device may do something
  const OpenFile open_file(file, hint);
  const auto most = static_cast<std::size_t>(limit);
  std::string content;
  // The size that a file says it has need not be the one that it has, as below /proc.
  while (content.size() <= most &&
         open_file.append(content, std::min(kChunkBytes, most + 1 - content.size()), file, hint)) {
  }
  if (content.size() > most)
    refuse(file, "is larger than " + size_limit_text(limit),
           "split it or check that it is the right file");
  return content;
}

std::string size_limit_text(std::int64_t bytes) {
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  if (bytes % kGib == 0) return std::to_string(bytes / kGib) + " GiB";
  return std::to_string(bytes >> 20) + " MiB";
}

}  // namespace tessera
