#include "hw/units/plain_text.h"

#include <charconv>
#include <cstdint>
#include <system_error>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

/// A character to be escaped; `length` 0 is none.
struct Control {
  std::uint32_t code = 0;
  std::size_t length = 0;
};

Control control_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const std::uint32_t first = byte(0);
  if (first == 0x7F || (first < 0x20 && first != '\n' && first != '\t')) return {first, 1};
  if (first == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) return {byte(1), 2};
  if (first != 0xE2 || (byte(1) != 0x80 && byte(1) != 0x81)) return {};
  const std::uint32_t code = 0x2000 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  const bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return turns && (byte(2) & 0xC0) == 0x80 ? Control{code, 3} : Control{};
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && rest == end;
}

}  // namespace

bool holds_control_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (control_at(text, i).length > 0) return true;
  return false;
}

std::string without_control_characters(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Control control = control_at(text, i);
    if (control.length == 0) {
      plain += text[i++];
      continue;
    }
    plain += formatted("\\u%04x", control.code & 0xFFFFU);
    i += control.length;
  }
  return plain;
}

std::string spreadsheet_cell(const std::string& text) {
  constexpr std::string_view kStartsFormula = "=+-@\t\r";
  const bool formula = text.size() > 1 && kStartsFormula.find(text.front()) != text.npos;
  return formula && !is_number(text) ? "'" + text : text;
}

}  // namespace tessera
