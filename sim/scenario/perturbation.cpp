#include "sim/scenario/perturbation.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

#include "hw/units/input_error.h"
#include "workloads/program/program.h"

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

/// Which of `count` things a list names; all where it is empty.
std::vector<bool> named(const std::string& list, int count, const char* field, const char* thing) {
  std::vector<bool> named(static_cast<std::size_t>(count), list.empty());
  if (list.empty()) return named;
  std::vector<int> numbers;
  try {
    numbers = parse_ranks(list);
  } catch (const InputError& error) {
    const Problem& problem = error.problems().front();
    throw InputError({field, "= " + problem.what, problem.hint});
  }
  for (const int number : numbers) {
    if (number >= count)
      throw InputError({field,
                        "names " + std::string(thing) + " " + std::to_string(number) +
                            ", but the job has " + std::to_string(count),
                        "name " + std::string(thing) + "s 0 to " + std::to_string(count - 1)});
    named[static_cast<std::size_t>(number)] = true;
  }
  return named;
}

}  // namespace

std::vector<int> ranks_of(const GpuPerturbation& gpus, const ParallelLayout& layout) {
  if (gpus.ranks.empty() && gpus.stages.empty() && gpus.replicas.empty())
    throw InputError({"ranks", "is missing, as are stages and replicas",
                      "say which GPUs differ: ranks: 0-7, stages: 0, or replicas: 0-3"});
  const std::vector<bool> in_ranks = named(gpus.ranks, layout.world_size(), "ranks", "rank");
  const std::vector<bool> in_stages = named(gpus.stages, layout.pipeline, "stages", "stage");
  const std::vector<bool> in_replicas = named(gpus.replicas, layout.data, "replicas", "replica");
  std::vector<int> ranks;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const RankPosition at = position_of(rank, layout);
    if (in_ranks[static_cast<std::size_t>(rank)] &&
        in_stages[static_cast<std::size_t>(at.pipeline)] &&
        in_replicas[static_cast<std::size_t>(at.data)])
      ranks.push_back(rank);
  }
  if (ranks.empty())
    throw InputError(
        {"ranks", "has nobody in common with stages and replicas", "leave one of them out"});
  return ranks;
}

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
