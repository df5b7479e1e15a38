#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hw/units/quantity.h"

namespace tessera {

/// What a text stands for; picks the units that it may carry. Values are in the base unit named
/// here.
enum class Dimension : std::uint8_t {
  ratio,             ///< a bare number, or "72 %" = 0.72
  bytes,             ///< GB = 1e9 B, GiB = 2^30 B
  bytes_per_second,  ///< "450 GB/s"; bits as "400 Gb/s" = 50 GB/s
  seconds,
  flops,
  flops_per_second,  ///< "66.9 TFLOPS", "66.9 TFLOP/s"; "1979 TOPS" for integer formats
  hertz,
  watts
};

/// Value of "<number> <unit>" in base units, correctly rounded: "3 us" equals the literal 3e-6.
/// Numbers are decimal with an optional exponent, independent of the locale; the blank before the
/// unit is optional. Throws InputError with an empty `where` for text that is not a number, NaN,
/// infinity, a negative value, overflow, and a unit that is missing, unknown or of another
/// dimension.
double parse_quantity(std::string_view text, Dimension dimension);

/// Whole bytes: exact for whole numbers, to the nearest byte for fractions ("1.5 KiB" = 1536 B).
Bytes parse_bytes(std::string_view text);
BytesPerSecond parse_bandwidth(std::string_view text);
Seconds parse_seconds(std::string_view text);
Flops parse_flops(std::string_view text);
FlopsPerSecond parse_flops_rate(std::string_view text);
Hertz parse_hertz(std::string_view text);
Watts parse_watts(std::string_view text);
double parse_ratio(std::string_view text);

/// Exact text in the unit that fits the size: parsing it gives `value` again, bit by bit, for
/// every finite non-negative value. "80 GiB", "450 GB/s", "12.3 us".
std::string to_text(Bytes value);
std::string to_text(BytesPerSecond value);
std::string to_text(Seconds value);
std::string to_text(Flops value);
std::string to_text(FlopsPerSecond value);
std::string to_text(Hertz value);
std::string to_text(Watts value);

/// Three significant digits for tables: "12.3 ms", "45.4 GiB", "-1.50 us".
std::string to_short_text(Bytes value);
std::string to_short_text(BytesPerSecond value);
std::string to_short_text(Seconds value);
std::string to_short_text(Flops value);
std::string to_short_text(FlopsPerSecond value);
std::string to_short_text(Hertz value);
std::string to_short_text(Watts value);

}  // namespace tessera
