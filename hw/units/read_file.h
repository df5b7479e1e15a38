#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tessera {

/// Largest file that any command reads whole.
inline constexpr std::int64_t kMaxWholeFileBytes = std::int64_t{1} << 30;

/// Throws InputError unless `file` is a regular file: a folder, a device or a pipe has no content
/// that ends. `hint` says what to give instead.
void check_is_file(const std::filesystem::path& file, const std::string& hint);

/// Content of `file`. Throws InputError where it is missing, is no regular file, cannot be read or
/// holds more than `limit` bytes; `hint` says what to give instead.
std::string read_whole_file(const std::filesystem::path& file, const std::string& hint,
                            std::int64_t limit = kMaxWholeFileBytes);

/// "4 MiB", "1 GiB"; `bytes` a whole number of such.
std::string size_limit_text(std::int64_t bytes);

}  // namespace tessera
