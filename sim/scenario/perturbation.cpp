#include "sim/scenario/perturbation.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr int kMostRanks = 10'000'000;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<int> number(std::string_view text) {
  text = trimmed(text);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value >= kMostRanks) return std::nullopt;
  return value;
}

}  // namespace

std::vector<int> parse_ranks(const std::string& list) {
  std::vector<int> ranks;
  std::string_view rest = list;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = trimmed(rest.substr(0, comma));
    const std::size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      throw InputError({.where = "ranks",
                        .what = "\"" + list + "\" is no list of ranks",
                        .hint = "write numbers and ranges, such as 0-7, 16"});
    }
    for (int rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
    if (comma == std::string_view::npos) return ranks;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace tessera
