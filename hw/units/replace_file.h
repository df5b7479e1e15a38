#pragma once

#include <filesystem>
#include <string_view>

namespace tessera {

/// Writes `contents` to a temporary file beside `path` and renames it, so that nobody ever sees
/// half a file; a device or a pipe is written in place. Throws InputError where the file cannot be
/// written.
void replace_file(const std::filesystem::path& path, std::string_view contents);

/// Removes the temporary file of a `replace_file` that a signal interrupted. Safe to call in a
/// signal handler.
void remove_unfinished_file() noexcept;

}  // namespace tessera
