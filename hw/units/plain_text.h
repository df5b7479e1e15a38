#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Whether `text` holds a character that a terminal obeys instead of showing it: C0 besides line
/// break and tab, DEL, C1, and marks that turn the direction of what follows.
bool holds_control_character(std::string_view text);

/// `text` with each of them as \u001b, which JSON reads as the same character.
std::string without_control_characters(std::string_view text);

/// `text` as a cell of a spreadsheet: what a program would run as a formula gets an apostrophe in
/// front. Numbers stay as they are.
std::string spreadsheet_cell(const std::string& text);

}  // namespace tessera
