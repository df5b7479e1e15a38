#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "hw/units/quantity.h"

namespace tessera {

// Figures and words as the tables for a person show them.

std::string fixed(double value, int decimals);
/// Filled with blanks behind, or in front.
std::string padded(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);
/// Four significant digits, so that 3 tokens/s and 3 million both read well.
std::string significant(double value);
/// Without the unit, three decimals.
std::string milliseconds(Seconds time);
/// "1.25 GiB".
std::string gibibytes(Bytes bytes);
/// "12.5 %" of 0.125.
std::string percent(double ratio);
/// Means over the ranks: whole unless the ranks differ.
std::string count(double mean);
/// Blanks for underscores.
std::string spaced(std::string_view label);
/// "1 micro-batch", "3 micro-batches".
std::string counted(int count, const std::string& noun);
/// "[1] text", broken between words.
std::string wrapped(const std::string& head, std::string_view text);

}  // namespace tessera
