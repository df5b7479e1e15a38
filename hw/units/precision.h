#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

/// Number format of a tensor or of a kernel's arithmetic. `tf32` stores 4 bytes and multiplies on
/// tensor cores.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp8, int64, int8 };

/// Bytes per element in memory.
constexpr std::int64_t element_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return 4;
    case Precision::bf16:
    case Precision::fp16:
      return 2;
    case Precision::fp8:
    case Precision::int8:
      return 1;
    case Precision::int64:
      return 8;
  }
  return 0;
}

std::string_view name_of(Precision precision);

}  // namespace tessera
