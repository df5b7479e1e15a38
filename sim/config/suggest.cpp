#include "sim/config/suggest.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

namespace tessera {
namespace {

constexpr std::size_t kLongestWord = 64;   ///< longer ones are no misspelling of a name of ours
constexpr std::size_t kListedBytes = 300;  ///< four lines of a terminal
constexpr double kCaseCost = 0.25;
constexpr std::size_t kShortestBeginning = 3;
constexpr double kErrorsPerLetter = 0.34;  ///< a third of the letters may be wrong

char plain(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

double replacement_cost(char a, char b) {
  if (a == b) return 0;
  return plain(a) == plain(b) ? kCaseCost : 1;
}

/// Of a longer word, in either case.
bool is_beginning(std::string_view word, std::string_view candidate) {
  return word.size() >= kShortestBeginning && candidate.size() > word.size() &&
         std::ranges::equal(word, candidate.substr(0, word.size()), {}, plain, plain);
}

/// The beginning up to a hyphen is nearer than any wrong letter: H200 is H200-SXM5-141GB, not H20.
double distance_to(std::string_view word, std::string_view candidate) {
  if (!is_beginning(word, candidate)) return spelling_distance(word, candidate);
  return plain(candidate[word.size()]) == '_' ? 0.5 : 1;
}

}  // namespace

double spelling_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: rows of the table are prefixes of `a`, columns prefixes of `b`.
  std::vector<std::vector<double>> cost(a.size() + 1, std::vector<double>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<double>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<double>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const double replaced = cost[i - 1][j - 1] + replacement_cost(a[i - 1], b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  std::string best;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const std::string& candidate : candidates) {
    const double distance = distance_to(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  const double letters = static_cast<double>(std::max(word.size(), best.size()));
  const double tolerated = std::max(1.0, kErrorsPerLetter * letters);
  return best_distance <= tolerated ? best : std::string();
}

std::string listed(std::span<const std::string> words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

std::vector<std::string> completions(std::string_view word,
                                     std::span<const std::string> candidates) {
  std::vector<std::string> found;
  std::ranges::copy_if(candidates, std::back_inserter(found), [word](const std::string& candidate) {
    return is_beginning(word, candidate);
  });
  return found;
}

std::string did_you_mean(std::string_view candidate) {
  return "did you mean " + std::string(candidate) + "?";
}

namespace {

/// Letters; 0 where too few are alike to mean anything.
std::ptrdiff_t common_beginning(std::string_view a, std::string_view b) {
  const auto letters = std::ranges::mismatch(a, b, {}, plain, plain).in1 - a.begin();
  return letters < std::ptrdiff_t{kShortestBeginning} ? 0 : letters;
}

/// Those that begin as `word` does come first, for a list that will not hold all.
std::vector<std::string> by_beginning(std::string_view word,
                                      std::span<const std::string> candidates) {
  std::vector<std::string> sorted(candidates.begin(), candidates.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [word](const std::string& candidate) {
    return common_beginning(word, candidate);
  });
  return sorted;
}

/// Those that have `word` somewhere in them: "p4d" of efa-p4d-x4.
std::vector<std::string> containing(std::string_view word,
                                    std::span<const std::string> candidates) {
  std::vector<std::string> found;
  if (word.size() < kShortestBeginning) return found;
  for (const std::string& candidate : candidates)
    if (!std::ranges::search(candidate, word, {}, plain, plain).empty()) found.push_back(candidate);
  return found;
}

/// How many of the first words four lines hold.
std::size_t held(std::span<const std::string> words) {
  std::size_t shown = 0, bytes = 0;
  while (shown < words.size() && bytes + words[shown].size() <= kListedBytes)
    bytes += words[shown++].size() + 2;
  return shown;
}

/// All, or as many as four lines hold and how many more there are.
std::string use_one_of(std::string_view word, std::span<const std::string> candidates) {
  if (candidates.size() == 1) return "use " + listed(candidates);
  if (held(candidates) == candidates.size()) return "use one of " + listed(candidates);
  const std::vector<std::string> nearer = by_beginning(word, candidates);
  const std::size_t shown = held(nearer);
  std::string list;
  for (const std::string& candidate : std::span(nearer).first(shown))
    list += (list.empty() ? "" : ", ") + candidate;
  return "use one of " + list + " and " + std::to_string(candidates.size() - shown) + " more";
}

}  // namespace

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> complete = completions(word, candidates);
  if (complete.size() > 1) return use_one_of(word, complete);
  if (const std::string best = nearest(word, candidates); !best.empty()) return did_you_mean(best);
  const std::vector<std::string> wider = containing(word, candidates);
  if (wider.size() == 1) return did_you_mean(wider.front());
  return use_one_of(word, wider.empty() ? candidates : std::span<const std::string>(wider));
}

}  // namespace tessera
