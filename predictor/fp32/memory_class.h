#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// Kernels limited by memory traffic that were measured; the other kinds derive from them.
enum class MemoryClass : std::uint8_t { elementwise, softmax, layer_norm };
inline constexpr std::size_t kMemoryClasses = 3;

}  // namespace tessera
