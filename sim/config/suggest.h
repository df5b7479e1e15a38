#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Insertions, deletions, replacements and swaps of neighbours between two words; the case of
/// letters counts half and '-' equals '_', so that a word in the wrong spelling is nearest.
double spelling_distance(std::string_view a, std::string_view b);

/// The candidate that `word` is most likely a misspelling or the beginning of; empty where none is
/// near. Ties go to the first.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// The candidates that `word`, of three letters and more, is the beginning of, whatever its case.
std::vector<std::string> completions(std::string_view word,
                                     std::span<const std::string> candidates);

/// "did you mean X?" where one candidate is near, else "use one of A, B or C" (as many as four
/// lines hold, those that begin alike first, and how many more there are) of those that it is the
/// beginning of, that have it in them, or of all.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

std::string did_you_mean(std::string_view candidate);

/// "1, 2 or 4".
std::string listed(std::span<const std::string> words);

}  // namespace tessera
