#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

namespace tessera::fuzz {

/// Where a fuzzer puts its input for readers that take a file: one per process, in the working
/// memory's file system where there is one.
inline std::filesystem::path input_file(const std::string& extension) {
  const std::string name = "tessera_fuzzer_" + std::to_string(getpid()) + extension;
  const std::filesystem::path memory = "/dev/shm";
  const bool has_memory = std::filesystem::is_directory(memory);
  return (has_memory ? memory : std::filesystem::temp_directory_path()) / name;
}

inline void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace tessera::fuzz
