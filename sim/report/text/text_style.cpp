#include "sim/report/text/text_style.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/report/palette.h"

namespace tessera {
namespace {

constexpr unsigned kFirstClass = 0x80;  // the last byte of U+E080, in UTF-8 EE 82 80

/// "#3156bb" as a terminal's 24-bit colour.
std::string terminal_colour(std::string_view colour) {
  std::string code = "\x1b[38;2";
  for (const std::size_t at : {1, 3, 5})
    code += ";" + std::to_string(std::stoi(std::string(colour.substr(at, 2)), nullptr, 16));
  return code + "m";
}

std::string code_of(std::string_view mark) {
  if (mark == kMarkGood) return "\x1b[32m";
  if (mark == kMarkBad) return "\x1b[1;31m";
  if (mark == kMarkStrong) return "\x1b[1m";
  if (mark == kMarkEnd) return "\x1b[0m";
  const auto number = static_cast<unsigned char>(mark[2]) - kFirstClass;
  if (number >= static_cast<unsigned>(kTimeCategoryCount)) return "";
  return terminal_colour(look_of(static_cast<TimeCategory>(number)).colour);
}

}  // namespace

std::string mark_of(TimeCategory category) {
  return {'\xEE', '\x82', static_cast<char>(kFirstClass + static_cast<unsigned>(category))};
}

bool is_mark(std::string_view text) {
  return text.size() >= kMarkBytes && text[0] == '\xEE' && (text[1] == '\x82' || text[1] == '\x83');
}

std::string text_bar(double share, int width) {
  constexpr std::array<std::string_view, 8> kParts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  return bar += kParts[static_cast<std::size_t>(eighths % 8)];
}

std::string terminal_colours(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_mark(text.substr(i))) {
      out += text[i];
      continue;
    }
    out += code_of(text.substr(i, kMarkBytes));
    i += kMarkBytes - 1;
  }
  return out;
}

}  // namespace tessera
