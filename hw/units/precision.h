#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

/// Number format of a tensor or of a kernel's arithmetic. `tf32` stores 4 bytes and multiplies on
/// tensor cores.
enum class Precision : std::uint8_t {
  fp32,
  tf32,
  bf16,
  fp16,
  fp8,
  int64,
  int8,
  fp4  ///< NVFP4: blocks of 16 that share a scale of one byte
};

inline constexpr std::array kAllPrecisions = {Precision::fp32, Precision::tf32, Precision::bf16,
                                              Precision::fp16, Precision::fp8,  Precision::int64,
                                              Precision::int8, Precision::fp4};

/// Bytes per element in memory; of fp4, two of whose elements share one, see `bytes_of`.
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
    case Precision::fp4:
      return 1;
    case Precision::int64:
      return 8;
  }
  return 0;
}

/// Bytes of so many elements; fp4 with its scales.
constexpr std::int64_t bytes_of(std::int64_t elements, Precision precision) {
  if (precision == Precision::fp4) return (elements + 1) / 2 + (elements + 15) / 16;
  return elements * element_bytes(precision);
}

/// "fp32"; the name of the enumerator.
std::string_view name_of(Precision precision);

/// Reverse of `name_of`. Throws InputError (with an empty `where`) naming the accepted words.
Precision parse_precision(std::string_view name);

}  // namespace tessera
