#pragma once

#include <string>
#include <string_view>

#include "sim/report/time_category.h"

namespace tessera {

/// How a result is written.
struct TextStyle {
  bool notes = false;   ///< with what its terms mean
  bool colour = false;  ///< with bars, and marks that terminal_colours() makes colours of
};

/// Marks in a text, from Unicode's private use: a colour of the palette begins, another one, the
/// end of what began last.
std::string mark_of(TimeCategory category);
constexpr std::string_view kMarkGood = "\uE0F0";
constexpr std::string_view kMarkBad = "\uE0F1";
constexpr std::string_view kMarkStrong = "\uE0F2";
constexpr std::string_view kMarkEnd = "\uE0F3";
constexpr std::size_t kMarkBytes = 3;

/// Whether `text` begins with a mark.
bool is_mark(std::string_view text);

/// `share` in [0, 1] of `width` columns as a bar, to an eighth of a column.
std::string text_bar(double share, int width);

/// Marks as what terminals take for colours.
std::string terminal_colours(std::string_view text);

}  // namespace tessera
