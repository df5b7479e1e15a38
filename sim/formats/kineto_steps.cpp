#include "sim/formats/kineto_steps.h"

#include <algorithm>
#include <vector>

namespace tessera {
namespace {

/// For every p how many of the first items equal those p further on, of the reversed sequence
/// (Z algorithm).
std::vector<std::size_t> matches_from_end(std::span<const int> names) {
  const std::vector<int> back(names.rbegin(), names.rend());
  std::vector<std::size_t> match(back.size(), 0);
  std::size_t left = 0;
  std::size_t right = 0;
  for (std::size_t i = 1; i < back.size(); ++i) {
    if (i < right) match[i] = std::min(right - i, match[i - left]);
    while (i + match[i] < back.size() && back[match[i]] == back[i + match[i]]) ++match[i];
    if (i + match[i] <= right) continue;
    left = i;
    right = i + match[i];
  }
  return match;
}

}  // namespace

std::optional<Repetition> repetition_in(std::span<const int> names) {
  const std::vector<std::size_t> match = matches_from_end(names);
  std::size_t most = 0;  // of what shorter parts cover: two layers repeat where one does
  for (std::size_t length = 1; length * 2 <= names.size(); ++length) {
    const std::size_t covered = match[length] + length;
    if (match[length] < length || covered <= most) continue;
    most = covered;
    if (names.size() - covered <= length) return Repetition{length, covered / length};
  }
  return std::nullopt;
}

}  // namespace tessera
