#include "sim/report/text/fitted_lines.h"

#include <algorithm>

#include "sim/report/text/text_style.h"

namespace tessera {
namespace {

bool goes_on(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // inside a code point
}

/// The column where the value of a row begins: behind the label and at least two spaces.
std::size_t value_column(std::string_view line) {
  const std::size_t label = line.find_first_not_of(' ');
  const std::size_t indent = label == std::string_view::npos ? 0 : label;
  if (indent >= 20) return indent;
  const std::size_t gap = line.find("  ", indent);
  const std::size_t value = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  return value != std::string_view::npos && value <= 40 ? value : indent + 2;
}

/// The byte at which column `width` begins, or the end.
std::size_t byte_of_column(std::string_view text, std::size_t width) {
  std::size_t at = 0;
  while (at < text.size() && columns_of(text.substr(0, at + 1)) <= width) ++at;
  return at;
}

/// Where a line of more than `width` columns breaks: its last space within them behind `indent`,
/// else the first one later; its size where there is none.
std::size_t break_of(std::string_view line, std::size_t indent, std::size_t width) {
  const std::size_t end = byte_of_column(line, width);
  const std::size_t within = line.rfind(' ', end);
  if (within != std::string_view::npos && within > indent) return within;
  return std::min(line.find(' ', end), line.size());
}

std::string fitted_line(std::string_view text, std::size_t width) {
  const std::size_t indent = std::min(value_column(text), width / 2);
  std::string line(text), out;
  while (columns_of(line) > width) {
    const std::size_t cut = break_of(line, indent, width);
    const std::size_t next = line.find_first_not_of(' ', cut);
    if (next == std::string::npos) break;
    out += line.substr(0, line.find_last_not_of(' ', cut) + 1) + '\n';
    line = std::string(indent, ' ') + line.substr(next);
  }
  return out + line;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_mark(text.substr(i)))
      i += kMarkBytes - 1;
    else if (!goes_on(text[i]))
      ++columns;
  }
  return columns;
}

std::string fitted(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += fitted_line(text.substr(0, end), width);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace tessera
