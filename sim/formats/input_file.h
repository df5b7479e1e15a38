#pragma once

#include <filesystem>
#include <istream>
#include <memory>

namespace tessera {

/// The contents of `path`, decompressed where they are gzip data. Throws InputError where the file
/// cannot be opened; damaged gzip data throw std::ios_base::failure while reading.
std::unique_ptr<std::istream> open_input_file(const std::filesystem::path& path);

}  // namespace tessera
