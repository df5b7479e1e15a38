#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "hw/units/text.h"
#include "hw/units/unit_table.h"

namespace tessera {
namespace {

constexpr int kSignificantDigits = 3;  ///< of the short form
constexpr int kMaxPointShift = 5;      ///< longer numbers are written with an exponent

/// digits[0].digits[1..] * 10^exponent.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

enum class Form { exact, rounded };

Decimal decimal_of(double value, Form form) {
  std::array<char, 64> buffer;
  char* const begin = buffer.data();
  char* const end = begin + buffer.size();
  constexpr auto kFormat = std::chars_format::scientific;
  const auto result = form == Form::exact
                          ? std::to_chars(begin, end, value, kFormat)
                          : std::to_chars(begin, end, value, kFormat, kSignificantDigits - 1);
  const std::string text(begin, result.ptr);
  const std::size_t e = text.find('e');
  Decimal decimal{text.substr(0, 1), std::atoi(text.c_str() + e + 1)};
  if (e > 2) decimal.digits += text.substr(2, e - 2);
  return decimal;
}

std::string with_point(std::string digits, std::size_t whole) {
  if (digits.size() <= whole) return digits.append(whole - digits.size(), '0');
  return digits.substr(0, whole) + '.' + digits.substr(whole);
}

std::string positional(const Decimal& decimal, int unit_exponent) {
  const int shift = decimal.exponent - unit_exponent;
  if (shift >= 0 && shift <= kMaxPointShift) {
    return with_point(decimal.digits, static_cast<std::size_t>(shift) + 1);
  }
  return with_point(decimal.digits, 1) + 'e' + std::to_string(shift);
}

/// The largest printed unit that is not above the value, else the smallest one.
const Unit& fitting_unit(int exponent, Dimension dimension) {
  const std::span<const Unit> units = units_of(dimension);
  const Unit* smallest = &units.front();
  const Unit* best = nullptr;
  for (const Unit& unit : units) {
    if (!unit.printed) continue;
    if (unit.exponent < smallest->exponent) smallest = &unit;
    if (unit.exponent > exponent) continue;
    if (best == nullptr || unit.exponent > best->exponent) best = &unit;
  }
  return best == nullptr ? *smallest : *best;
}

std::string decimal_text(double value, Dimension dimension, Form form) {
  const std::string base_unit(units_of(dimension).front().symbol);
  if (value == 0) return "0 " + base_unit;
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isnan(value)) return "nan " + base_unit;
  if (std::isinf(value)) return sign + "inf " + base_unit;
  const Decimal decimal = decimal_of(std::abs(value), form);
  const Unit& unit = fitting_unit(decimal.exponent, dimension);
  return sign + positional(decimal, unit.exponent) + ' ' + std::string(unit.symbol);
}

constexpr std::array<std::string_view, 5> kBinarySymbols = {"B", "KiB", "MiB", "GiB", "TiB"};
constexpr std::int64_t kBinaryStep = 1024;

}  // namespace

std::string to_text(Bytes value) {
  std::int64_t count = value.value();
  std::size_t unit = 0;
  while (count != 0 && count % kBinaryStep == 0 && unit + 1 < kBinarySymbols.size()) {
    count /= kBinaryStep;
    ++unit;
  }
  return std::to_string(count) + ' ' + std::string(kBinarySymbols[unit]);
}

std::string to_short_text(Bytes value) {
  if (std::abs(value.value()) < kBinaryStep) return to_text(value);
  double count = static_cast<double>(value.value());
  std::size_t unit = 0;
  while (std::abs(count) >= kBinaryStep && unit + 1 < kBinarySymbols.size()) {
    count /= kBinaryStep;
    ++unit;
  }
  const std::string sign = count < 0 ? "-" : "";
  const std::string digits = positional(decimal_of(std::abs(count), Form::rounded), 0);
  return sign + digits + ' ' + std::string(kBinarySymbols[unit]);
}

std::string to_text(BytesPerSecond value) {
  return decimal_text(value.value(), Dimension::bytes_per_second, Form::exact);
}
std::string to_text(Seconds value) {
  return decimal_text(value.value(), Dimension::seconds, Form::exact);
}
std::string to_text(Flops value) {
  return decimal_text(value.value(), Dimension::flops, Form::exact);
}
std::string to_text(FlopsPerSecond value) {
  return decimal_text(value.value(), Dimension::flops_per_second, Form::exact);
}
std::string to_text(Hertz value) {
  return decimal_text(value.value(), Dimension::hertz, Form::exact);
}
std::string to_text(Watts value) {
  return decimal_text(value.value(), Dimension::watts, Form::exact);
}

std::string to_short_text(BytesPerSecond value) {
  return decimal_text(value.value(), Dimension::bytes_per_second, Form::rounded);
}
std::string to_short_text(Seconds value) {
  return decimal_text(value.value(), Dimension::seconds, Form::rounded);
}
std::string to_short_text(Flops value) {
  return decimal_text(value.value(), Dimension::flops, Form::rounded);
}
std::string to_short_text(FlopsPerSecond value) {
  return decimal_text(value.value(), Dimension::flops_per_second, Form::rounded);
}
std::string to_short_text(Hertz value) {
  return decimal_text(value.value(), Dimension::hertz, Form::rounded);
}
std::string to_short_text(Watts value) {
  return decimal_text(value.value(), Dimension::watts, Form::rounded);
}

}  // namespace tessera
