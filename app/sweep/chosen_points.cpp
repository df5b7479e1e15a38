#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "app/sweep/sweep_grid.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::int64_t kMaxPointsToVisit = 10'000'000;
constexpr int kMaxSampleRounds = 200;

/// splitmix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// In [0, bound).
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }

 private:
  std::uint64_t state_;
};

/// For each of `count` points the step of an axis: every stratum of the axis once, in random order.
std::vector<std::int64_t> stratified_steps(std::int64_t steps, std::int64_t count, Random& random) {
  std::vector<std::int64_t> strata(static_cast<std::size_t>(count));
  std::iota(strata.begin(), strata.end(), 0);
  for (std::size_t i = strata.size(); i > 1; --i)
    std::swap(strata[i - 1],
              strata[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  if (steps > count) {
    // Several steps to a stratum: one of them.
    for (std::int64_t& stratum : strata) {
      const std::int64_t begin = stratum * steps / count;
      stratum = begin + random.below((stratum + 1) * steps / count - begin);
    }
  } else {
    for (std::int64_t& stratum : strata) stratum = stratum * steps / count;
  }
  return strata;
}

std::vector<std::int64_t> hypercube(const SweepSpec& spec, std::int64_t count, Random& random) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count), 0);
  for (const SweepAxis& axis : spec.axes) {
    const auto steps = static_cast<std::int64_t>(axis.values.size());
    const std::vector<std::int64_t> step = stratified_steps(steps, count, random);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = numbers[i] * steps + step[i];
  }
  return numbers;
}

/// Points that conditions drop are replaced by those of further hypercubes.
std::vector<std::int64_t> sampled_points(const SweepGrid& grid, const SweepSpec& spec,
                                         std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::set<std::int64_t> sample;
  count = std::min(count, grid.size());
  for (int round = 0; round < kMaxSampleRounds; ++round) {
    if (static_cast<std::int64_t>(sample.size()) == count) break;
    for (const std::int64_t number : hypercube(spec, count, random)) {
      if (static_cast<std::int64_t>(sample.size()) == count) break;
      if (!sample.contains(number) && grid.keeps(number)) sample.insert(number);
    }
  }
  return {sample.begin(), sample.end()};
}

std::vector<std::int64_t> kept_points(const SweepGrid& grid, std::optional<std::int64_t> limit) {
  std::vector<std::int64_t> kept;
  for (std::int64_t number = 0; number < grid.size(); ++number) {
    if (limit && static_cast<std::int64_t>(kept.size()) >= *limit) break;
    if (number >= kMaxPointsToVisit)
      throw InputError(Problem{"", "the grid has " + std::to_string(grid.size()) + " points",
                               "draw some with --sample N, or make the axes shorter"});
    if (grid.keeps(number)) kept.push_back(number);
  }
  return kept;
}

}  // namespace

std::vector<std::int64_t> chosen_points(const SweepGrid& grid, const SweepSpec& spec,
                                        const PointChoice& choice) {
  std::vector<std::int64_t> numbers = choice.sample
                                          ? sampled_points(grid, spec, *choice.sample, choice.seed)
                                          : kept_points(grid, choice.limit);
  if (choice.limit && static_cast<std::int64_t>(numbers.size()) > *choice.limit)
    numbers.resize(static_cast<std::size_t>(*choice.limit));
  std::vector<std::int64_t> mine;
  for (std::size_t i = static_cast<std::size_t>(choice.shard - 1); i < numbers.size();
       i += static_cast<std::size_t>(choice.shards))
    mine.push_back(numbers[i]);
  return mine;
}

}  // namespace tessera
