#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

/// 64-bit FNV-1a of `text`: names a file by its content.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace tessera
