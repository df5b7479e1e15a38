#include "sim/config/files/text_file.h"

#include <array>
#include <cstdint>
#include <system_error>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Length of a UTF-8 sequence by its first byte and the smallest code point that may use it.
struct Utf8Lead {
  unsigned char mask;
  unsigned char bits;
  std::size_t length;
  std::uint32_t smallest;
};
constexpr std::array<Utf8Lead, 4> kUtf8Leads = {
    {{0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}}};

bool is_code_point(std::uint32_t value, const Utf8Lead& lead) {
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value >= lead.smallest && value <= 0x10FFFF && !surrogate;
}

/// Bytes of the well-formed UTF-8 sequence that `text` begins with; 0 where there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Utf8Lead& lead : kUtf8Leads) {
    if ((byte(0) & lead.mask) != lead.bits) continue;
    if (lead.length > text.size()) return 0;
    std::uint32_t value = byte(0) & static_cast<unsigned char>(~lead.mask);
    for (std::size_t i = 1; i < lead.length; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return 0;
      value = value << 6 | (byte(i) & 0x3Fu);
    }
    return is_code_point(value, lead) ? lead.length : 0;
  }
  return 0;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F;
}

[[noreturn]] void refuse(const std::string& where, std::string what, std::string hint) {
  throw InputError(Problem{where, std::move(what), std::move(hint)});
}

/// Line and column of the character under examination.
struct TextPlace {
  int line = 1;
  int column = 1;
  bool in_indent = true;

  void advance(char c) {
    ++column;
    in_indent = in_indent && c == ' ';
    if (c == '\n') *this = {line + 1, 1, true};
  }
  std::string text(const std::string& where) const {
    return where + ":" + std::to_string(line) + ":" + std::to_string(column);
  }
};

}  // namespace

std::string shown_path(const fs::path& file) {
  std::error_code failure;
  const fs::path here = fs::current_path(failure);
  if (failure || !file.is_absolute()) return file.lexically_normal().string();
  const fs::path relative = file.lexically_normal().lexically_relative(here);
  const bool below = !relative.empty() && *relative.begin() != "..";
  return below ? relative.string() : file.lexically_normal().string();
}

std::string read_text_file(const fs::path& file) {
  const std::string shown = shown_path(file);
  std::error_code failure;
  const fs::file_status status = fs::status(file, failure);
  if (!fs::exists(status)) refuse(shown, "no such file", "check the path");
  if (!fs::is_regular_file(status)) refuse(shown, "is not a file", "name a file");
  try {
    return read_whole_file(file, "check its permissions", kMaxFileBytes);
  } catch (const InputError& error) {
    const Problem& problem = error.problems().front();
    refuse(shown, problem.what, problem.hint);
  }
}

void check_utf8(std::string_view text, const std::string& where) {
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0)
      refuse(where + ":" + std::to_string(line), "is not valid UTF-8", "save the file as UTF-8");
    line += text[i] == '\n' ? 1 : 0;
    i += length;
  }
}

void check_plain_text(std::string_view text, const std::string& where) {
  TextPlace place;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) refuse(place.text(where), "is not valid UTF-8", "save the file as UTF-8");
    if (is_control(text[i])) {
      refuse(place.text(where), "holds a control character", "save the file as plain text");
    }
    if (text[i] == '\t' && place.in_indent) {
      refuse(place.text(where), "a tab indents this line", "indent with spaces");
    }
    place.advance(text[i]);
    i += length;
  }
}

}  // namespace tessera
