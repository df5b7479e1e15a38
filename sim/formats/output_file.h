#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

/// Replaces `path` at once (hw/units/replace_file.h). A name that ends in ".gz" gets gzip data
/// without a time stamp: equal contents give equal bytes. Throws InputError where the file cannot
/// be written.
void write_output_file(const std::filesystem::path& path, std::string_view contents);

/// gzip format, no name and no time stamp in the header.
std::string gzip(std::string_view contents);

}  // namespace tessera
