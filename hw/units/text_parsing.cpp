#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "hw/units/unit_table.h"

namespace tessera {
namespace {

constexpr Dimension kAllDimensions[] = {
    Dimension::ratio,   Dimension::bytes, Dimension::bytes_per_second,
    Dimension::seconds, Dimension::flops, Dimension::flops_per_second,
    Dimension::hertz,   Dimension::watts};

/// "12.5e3 GB/s" taken apart; the number stays text so that a unit can shift its decimal point.
struct NumberAndUnit {
  std::string_view mantissa;
  int exponent = 0;
  std::string_view unit;
};

[[noreturn]] void fail(std::string_view text, const std::string& complaint,
                       const std::string& hint) {
  throw InputError({"", "\"" + std::string(text) + "\" " + complaint, hint});
}

std::string example_hint(Dimension dimension) {
  if (dimension == Dimension::ratio) return "write a number such as 0.9";
  const std::string name(name_of(dimension));
  return "write a " + name + " as a number and one of " + listed_units(dimension);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool starts_like_a_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.starts_with('.')) text.remove_prefix(1);
  return !text.empty() && is_digit(text.front());
}

int exponent_of(std::string_view number, std::size_t e) {
  if (e == std::string_view::npos) return 0;
  std::string_view digits = number.substr(e + 1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int exponent = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  return exponent;
}

NumberAndUnit split(std::string_view text, Dimension dimension) {
  const std::string_view body = trimmed(text);
  if (body.starts_with('-')) fail(text, "is negative", "use a value of zero or more");
  if (!starts_like_a_number(body)) fail(text, "is not a finite number", example_hint(dimension));
  double number = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (error != std::errc()) fail(text, "is outside the range of numbers", "check the exponent");
  const auto length = static_cast<std::size_t>(end - body.data());
  const std::string_view token = body.substr(0, length);
  const std::size_t e = token.find_first_of("eE");
  return {token.substr(0, e), exponent_of(token, e), trimmed(body.substr(length))};
}

const Unit* find_unit(std::string_view symbol, Dimension dimension) {
  const std::span<const Unit> units = units_of(dimension);
  const auto found = std::ranges::find(units, symbol, &Unit::symbol);
  return found == units.end() ? nullptr : &*found;
}

/// Symbols that differ from `symbol` only in the case of letters: "GB/s or Gb/s".
std::string same_letters(std::string_view symbol, Dimension dimension) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::string list;
  for (const Unit& unit : units_of(dimension)) {
    if (!std::ranges::equal(unit.symbol, symbol, {}, lower, lower)) continue;
    if (!list.empty()) list += " or ";
    list += unit.symbol;
  }
  return list;
}

std::optional<Dimension> dimension_with(std::string_view symbol) {
  for (const Dimension dimension : kAllDimensions) {
    if (find_unit(symbol, dimension) != nullptr) return dimension;
  }
  return std::nullopt;
}

[[noreturn]] void fail_on_unit(std::string_view text, std::string_view symbol,
                               Dimension dimension) {
  if (symbol.empty()) fail(text, "has no unit", example_hint(dimension));
  const std::string quoted = "\"" + std::string(symbol) + "\"";
  if (const std::string meant = same_letters(symbol, dimension); !meant.empty()) {
    fail(text, "has the unknown unit " + quoted, "did you mean " + meant + "?");
  }
  const std::string wanted(name_of(dimension));
  if (const auto other = dimension_with(symbol)) {
    fail(text, "is a " + std::string(name_of(*other)) + ", not a " + wanted,
         example_hint(dimension));
  }
  fail(text, "has the unknown unit " + quoted, example_hint(dimension));
}

const Unit& unit_in(std::string_view text, std::string_view symbol, Dimension dimension) {
  const Unit* unit = find_unit(symbol, dimension);
  if (unit == nullptr) fail_on_unit(text, symbol, dimension);
  return *unit;
}

double scaled(std::string_view text, const NumberAndUnit& parts, const Unit& unit) {
  const std::string shifted =
      std::string(parts.mantissa) + 'e' + std::to_string(parts.exponent + unit.exponent);
  double value = 0;
  const auto result = std::from_chars(shifted.data(), shifted.data() + shifted.size(), value);
  value *= unit.factor;
  if (result.ec != std::errc() || !std::isfinite(value)) {
    fail(text, "is outside the range of numbers", "check the exponent and the unit");
  }
  return value;
}

constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

/// The value where it is a whole number of bytes given as a plain integer, which a double could
/// not hold above 2^53.
std::optional<std::int64_t> whole_bytes(const NumberAndUnit& parts, const Unit& unit) {
  std::int64_t count = 0;
  const char* const end = parts.mantissa.data() + parts.mantissa.size();
  const auto result = std::from_chars(parts.mantissa.data(), end, count);
  if (parts.exponent != 0 || result.ptr != end || result.ec != std::errc()) return std::nullopt;
  const auto scale = std::llround(unit.factor * std::pow(10.0, unit.exponent));
  if (count > kMaxBytes / scale) return std::nullopt;
  return count * scale;
}

}  // namespace

double parse_quantity(std::string_view text, Dimension dimension) {
  const NumberAndUnit parts = split(text, dimension);
  return scaled(text, parts, unit_in(text, parts.unit, dimension));
}

Bytes parse_bytes(std::string_view text) {
  const NumberAndUnit parts = split(text, Dimension::bytes);
  const Unit& unit = unit_in(text, parts.unit, Dimension::bytes);
  if (const auto exact = whole_bytes(parts, unit)) return Bytes(*exact);
  const double rounded = std::round(scaled(text, parts, unit));
  if (rounded >= static_cast<double>(kMaxBytes)) {
    fail(text, "is too large", "sizes end below 2^63 bytes");
  }
  return Bytes(static_cast<std::int64_t>(rounded));
}

BytesPerSecond parse_bandwidth(std::string_view text) {
  return BytesPerSecond(parse_quantity(text, Dimension::bytes_per_second));
}
Seconds parse_seconds(std::string_view text) {
  return Seconds(parse_quantity(text, Dimension::seconds));
}
Flops parse_flops(std::string_view text) {
  return Flops(parse_quantity(text, Dimension::flops));
}
FlopsPerSecond parse_flops_rate(std::string_view text) {
  return FlopsPerSecond(parse_quantity(text, Dimension::flops_per_second));
}
Hertz parse_hertz(std::string_view text) {
  return Hertz(parse_quantity(text, Dimension::hertz));
}
Watts parse_watts(std::string_view text) {
  return Watts(parse_quantity(text, Dimension::watts));
}
double parse_ratio(std::string_view text) {
  return parse_quantity(text, Dimension::ratio);
}

}  // namespace tessera
