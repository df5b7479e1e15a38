#include "app/import/simgrid_radical.h"

#include <charconv>

namespace tessera {
namespace {

std::optional<int> number_of(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::vector<int>> simgrid_radical(const std::string& text, std::size_t most) {
  std::vector<int> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    const std::size_t dash = part.find('-');
    const auto first = number_of(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    if (static_cast<std::size_t>(*last - *first) >= most - numbers.size()) return std::nullopt;
    // Counted up from the first: the last may be the largest number there is.
    for (int beyond = 0; beyond <= *last - *first; ++beyond) numbers.push_back(*first + beyond);
    begin = comma + 1;
  }
  return numbers;
}

}  // namespace tessera
