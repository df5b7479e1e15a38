#include "hw/units/formatted.h"

#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace tessera {
namespace {

std::string printed(const char* format, std::va_list values) {
  std::va_list again;
  va_copy(again, values);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, values);
  return text;
}

}  // namespace

std::string formatted(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  std::string text = printed(format, values);
  va_end(values);
  return text;
}

std::string text_line(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  std::string text = printed(format, values);
  va_end(values);
  return text + "\n";
}

}  // namespace tessera
