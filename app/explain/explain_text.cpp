#include "app/explain/explain_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "hw/units/formatted.h"
#include "sim/report/analysis/rank_list.h"

namespace tessera {

const char* const kCriticalPathDefinition =
    "chain of causes from the start of the step to its end: what released each op last. Shortening "
    "anything else does not shorten the step";
const char* const kElasticityDefinition =
    "d ln(step time) / d ln(time that the resource takes), by simulating a machine on which it is "
    "faster: 1 = the step follows it, 0 = nothing waits for it. What is missing from a sum of 1 is "
    "starting and draining kernels, steps of collectives, rounding to waves and tiles";

namespace {

constexpr std::size_t kOpRows = 12;
constexpr std::array kColumns{TimeClass::compute, TimeClass::contention, TimeClass::communication,
                              TimeClass::bubble,  TimeClass::host,       TimeClass::memory_stall,
                              TimeClass::idle};

double share(Seconds part, Seconds whole) {
  return whole.value() > 0 ? 100 * (part / whole) : 0.0;
}

double milliseconds(Seconds time) {
  return time.value() * 1e3;
}

std::string name_of_part(TimeClass time_class, const std::string& part) {
  return std::string(label_of(time_class)) + (part.empty() ? "" : " " + part);
}

/// Short enough for eight columns on a terminal.
const char* head_of(TimeClass column) {
  switch (column) {
    case TimeClass::communication:
      return "commun.";
    case TimeClass::memory_stall:
      return "mem. stall";
    case TimeClass::compute:
      return "compute";
    case TimeClass::contention:
      return "contention";
    case TimeClass::bubble:
      return "bubble";
    case TimeClass::host:
      return "host";
    default:
      return "idle";
  }
}

int column_width(TimeClass column) {
  return std::max(6, static_cast<int>(std::string_view(head_of(column)).size()));
}

std::string shares_of(const RankStory& rank, Seconds step_time) {
  std::string cells;
  for (const TimeClass column : kColumns) {
    cells += formatted(" %*.1f", column_width(column), share(rank.in(column), step_time));
  }
  return cells;
}

std::string rank_rows(const StepStory& story) {
  std::string text = "\n% of the step, by rank\n  stage";
  for (const TimeClass column : kColumns) {
    text += formatted(" %*s", column_width(column), head_of(column));
  }
  text += "  ranks\n";
  std::map<std::pair<int, std::string>, std::vector<int>> alike;
  for (const RankStory& rank : story.ranks) {
    std::vector<int>& ranks = alike[{rank.stage, shares_of(rank, story.step_time)}];
    ranks.insert(ranks.end(), rank.ranks.begin(), rank.ranks.end());
  }
  for (auto& [key, ranks] : alike) {
    std::ranges::sort(ranks);
    text +=
        text_line("  %5d", key.first).substr(0, 7) + key.second + "  " + rank_list(ranks) + "\n";
  }
  return text;
}

/// Parts of all classes, mean over the ranks.
std::string part_rows(const StepStory& story) {
  std::map<std::pair<TimeClass, std::string>, Seconds> parts;
  std::size_t all = 0;
  for (const RankStory& rank : story.ranks) all += rank.ranks.size();
  for (const RankStory& rank : story.ranks) {
    const double weight = static_cast<double>(rank.ranks.size()) / static_cast<double>(all);
    for (const ClassTime& entry : rank.times)
      parts[{entry.time_class, entry.part}] += entry.time * weight;
  }
  std::string text = text_line("\n%-42s %12s %8s", "time of a GPU, mean over ranks", "ms", "%");
  for (const auto& [key, time] : parts) {
    if (time <= Seconds()) continue;
    text += text_line("  %-40s %12.3f %8.1f", name_of_part(key.first, key.second).c_str(),
                      milliseconds(time), share(time, story.step_time));
  }
  return text;
}

std::string path_rows(const StepStory& story) {
  std::string text = text_line("\n%-42s %12s %8s", "critical path", "ms", "%");
  for (const ClassTime& entry : story.path_times)
    text += text_line("  %-40s %12.3f %8.1f", name_of_part(entry.time_class, entry.part).c_str(),
                      milliseconds(entry.time), share(entry.time, story.step_time));
  text += text_line("\n%-42s %12s %8s %8s", "longest on the critical path", "ms", "%", "times");
  for (std::size_t i = 0; i < std::min(kOpRows, story.path_ops.size()); ++i) {
    const PathOp& op = story.path_ops[i];
    text += text_line("  %-40s %12.3f %8.1f %8d", op.name.c_str(), milliseconds(op.time),
                      share(op.time, story.step_time), op.count);
  }
  return text;
}

std::string sensitivity_rows(const StepExplanation& explanation) {
  if (explanation.sensitivities.empty()) return "";
  const double faster = 100 * (explanation.sensitivities.front().factor - 1);
  const std::string head = formatted("what would help: %.3g %% faster", faster);
  std::string text = text_line("\n%-52s %12s %14s", head.c_str(), "step %", "elasticity");
  double sum = 0;
  for (const Sensitivity& entry : explanation.sensitivities) {
    const double change = share(entry.step_time, explanation.story.step_time) - 100;
    text += text_line("  %-50s %+12.2f %14.3f", std::string(meaning_of(entry.resource)).c_str(),
                      change, entry.elasticity);
    sum += entry.elasticity;
  }
  return text + text_line("  %-50s %12s %14.3f", "sum", "", sum);
}

std::string definitions_text() {
  std::string text = "\n";
  for (const TimeClass column : kColumns)
    text += std::string(label_of(column)) + ": " + std::string(definition_of(column)) + "\n";
  return text + "critical path: " + kCriticalPathDefinition +
         ".\nelasticity: " + kElasticityDefinition + ".\n";
}

}  // namespace

std::string_view definition_of(TimeClass time_class) {
  switch (time_class) {
    case TimeClass::compute:
      return "kernels run, at their pace alone";
    case TimeClass::contention:
      return "what collectives beside the kernels, which share the GPU, add to that";
    case TimeClass::communication:
      return "no kernel runs, and a collective or message holds the next one up";
    case TimeClass::bubble:
      return "no kernel runs, because other pipeline stages are still at work";
    case TimeClass::host:
      return "no kernel runs, because the host has not launched it yet";
    case TimeClass::memory_stall:
      return "no kernel runs, because memory is not there yet (copies from the host)";
    case TimeClass::idle:
      return "the rank is done, others are not";
    case TimeClass::unexplained:
      return "nothing that is known held the next op up";
  }
  return "";
}

TimeClass bound_by(const StepStory& story) {
  std::map<TimeClass, Seconds> classes;
  for (const ClassTime& entry : story.path_times) classes[entry.time_class] += entry.time;
  TimeClass longest = TimeClass::compute;
  for (const auto& [time_class, time] : classes) {
    if (time > classes[longest]) longest = time_class;
  }
  return longest;
}

std::string explanation_text(const StepExplanation& explanation, bool notes) {
  const StepStory& story = explanation.story;
  const Provenance& provenance = explanation.provenance;
  const TimeClass longest = bound_by(story);
  Seconds in_longest;
  for (const ClassTime& entry : story.path_times) {
    if (entry.time_class == longest) in_longest += entry.time;
  }
  return provenance.scenario + ": " + provenance.mode + " step of " + provenance.model + " on " +
         std::to_string(explanation.gpus) + " x " + explanation.gpu + "\n" +
         text_line("step time %.3f ms, bound by %s: %.1f %% of the critical path",
                   milliseconds(story.step_time), std::string(label_of(longest)).c_str(),
                   share(in_longest, story.step_time)) +
         rank_rows(story) + part_rows(story) + path_rows(story) + sensitivity_rows(explanation) +
         (notes ? definitions_text() : "\nwhat the terms mean: --notes\n");
}

}  // namespace tessera
