#include "app/html/drawn_step.h"

#include <algorithm>

#include "app/html/step_figures.h"
#include "app/html/timeline_data.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

/// Of the rank with the highest peak among those simulated.
PageJson fullest_memory(const TimedProgram& timed, const Timeline& timeline,
                        const StepPageLimits& limits) {
  const TimelineIndex index(timed, timeline);
  int fullest = index.simulated().front().rank;
  const auto peak = [&](int rank) { return timeline.peak_memory[static_cast<std::size_t>(rank)]; };
  for (const auto& [rank, stands_for] : index.simulated())
    if (peak(rank) > peak(fullest)) fullest = rank;
  PageJson memory = memory_of_rank(index, timed, fullest, limits.memory_samples);
  memory["peak_bytes"] = peak(fullest).value();
  memory["static_bytes"] = index.program_of(fullest).static_memory.value();
  memory["categories"] = memory_by_category(index, timed, fullest, limits.category_samples);
  memory["capacity_bytes"] = timed.topology.cluster().node.gpu.memory.value();
  memory["step_time_s"] = timeline.step_time.value();
  return memory;
}

/// Rows of `from` behind those of `timeline`, named after `side`.
void append_rows(PageJson& timeline, const PageJson& from, const std::string& side) {
  const int first_name = static_cast<int>(timeline["names"].size());
  for (const PageJson& name : from["names"]) timeline["names"].push_back(name);
  for (PageJson row : from["rows"]) {
    row["name"] = side + ": " + row["name"].get<std::string>();
    for (PageJson& name : row["names"]) name = name.get<int>() + first_name;
    timeline["rows"].push_back(std::move(row));
  }
  timeline["ends"].push_back({{"name", side + " ends"}, {"at", from["step_time_s"]}});
}

}  // namespace

PageJson drawn_step(const TimedProgram& timed, const Timeline& timeline,
                    const StepPageLimits& limits) {
  return {{"timeline", timeline_data(timed, timeline, {}, limits)},
          {"memory", fullest_memory(timed, timeline, limits)}};
}

PageJson joined_timelines(const PageJson& a, const PageJson& b) {
  PageJson joined{{"step_time_s", std::max(a["step_time_s"], b["step_time_s"])},
                  {"kinds", a["kinds"]},
                  {"colours", a["colours"]},
                  {"stories", PageJson::object()},
                  {"names", PageJson::array()},
                  {"rows", PageJson::array()},
                  {"ends", PageJson::array()}};
  append_rows(joined, a, "A");
  append_rows(joined, b, "B");
  const bool is_short = a.contains("note") || b.contains("note");
  if (is_short) joined["note"] = "of each side the first GPUs; others do the same or are left out";
  return joined;
}

PageJson joined_memory(const PageJson& a, const PageJson& b) {
  PageJson rank = b;
  rank["name"] = "the fullest GPU of each";
  rank["before"] = {{"times_s", a["times_s"]}, {"bytes", a["bytes"]}};
  return {{"step_time_s", std::max(a["step_time_s"], b["step_time_s"])},
          {"capacity_bytes", std::min(a["capacity_bytes"], b["capacity_bytes"])},
          {"before", "A"},
          {"shown", "B"},
          {"ranks", PageJson::array({std::move(rank)})}};
}

}  // namespace tessera
