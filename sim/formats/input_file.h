#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>

namespace tessera {

/// Most bytes that a file may hold, decompressed.
inline constexpr std::int64_t kMaxInputBytes = std::int64_t{4} << 30;
/// From kFreeInputBytes on, most decompressed bytes for each compressed one: traces have 10 to 50,
/// and deflate can reach 1032.
inline constexpr std::int64_t kMaxCompression = 200;
inline constexpr std::int64_t kFreeInputBytes = std::int64_t{64} << 20;

/// The contents of `path`, decompressed where they are gzip data. Throws InputError where the file
/// is no regular file or cannot be opened. The buffer of the stream throws InputError over the
/// limits above and std::ios_base::failure for damaged gzip data.
std::unique_ptr<std::istream> open_input_file(const std::filesystem::path& path);

/// All of it. Throws InputError for whatever is wrong.
std::string read_input_file(const std::filesystem::path& path);

}  // namespace tessera
