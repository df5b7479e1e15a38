#pragma once

#include <string>

namespace tessera {

/// printf into a string of any length; the compiler checks the values against `format`.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

/// The same with a line break behind it.
[[gnu::format(printf, 1, 2)]] std::string text_line(const char* format, ...);

}  // namespace tessera
