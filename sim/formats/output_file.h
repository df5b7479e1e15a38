#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

/// Writes `contents` to a temporary file beside `path` and renames it, so that nobody ever sees
/// half a file. A name that ends in ".gz" gets gzip data without a time stamp: equal contents give
/// equal bytes. Throws InputError where the file cannot be written.
void write_output_file(const std::filesystem::path& path, std::string_view contents);

/// gzip format, no name and no time stamp in the header.
std::string gzip(std::string_view contents);

}  // namespace tessera
