#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

/// Number format of a tensor or of a kernel's arithmetic. `tf32` stores 4 bytes and multiplies on
/// tensor cores.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp8, int64, int8 };

inline constexpr std::array kAllPrecisions = {Precision::fp32, Precision::tf32, Precision::bf16,
                                              Precision::fp16, Precision::fp8,  Precision::int64,
                                              Precision::int8};

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

/// "fp32"; the name of the enumerator.
std::string_view name_of(Precision precision);

/// Reverse of `name_of`. Throws InputError (with an empty `where`) naming the accepted words.
Precision parse_precision(std::string_view name);

}  // namespace tessera
