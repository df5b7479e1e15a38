#include "sim/report/text/table_cells.h"

#include <algorithm>
#include <cmath>

#include "hw/units/formatted.h"
#include "sim/report/text/fitted_lines.h"

namespace tessera {

std::string fixed(double value, int decimals) {
  return formatted("%.*f", decimals, value);
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, text.size()), ' ');
  return out;
}

std::string right(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + std::string(text);
}

std::string significant(double value) {
  const double magnitude = value > 0 ? std::floor(std::log10(value)) : 0;
  return fixed(value, static_cast<int>(std::clamp(3.0 - magnitude, 0.0, 3.0)));
}

std::string milliseconds(Seconds time) {
  return fixed(time.value() * 1e3, 3);
}

std::string gibibytes(Bytes bytes) {
  return fixed(static_cast<double>(bytes.value()) / static_cast<double>((1_GiB).value()), 2) +
         " GiB";
}

std::string percent(double ratio) {
  return fixed(ratio * 100, 1) + " %";
}

std::string count(double mean) {
  return fixed(mean, std::floor(mean) == mean ? 0 : 1);
}

std::string spaced(std::string_view label) {
  std::string words(label);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string counted(int count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "es");
}

std::string wrapped(const std::string& head, std::string_view text) {
  std::string out = head;
  std::size_t column = out.size();
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const bool wraps = column + 1 + word.size() > kTerminalWidth;
    out += wraps ? "\n    " : " ";
    out += word;
    column = (wraps ? 4 : column + 1) + word.size();
  }
  return out + "\n";
}

}  // namespace tessera
