#include "app/search/layout_result.h"

#include <nlohmann/json.hpp>

#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/report/metrics.h"

namespace tessera {

using Json = nlohmann::ordered_json;

namespace {

/// Not simulated: no plan makes it fit.
LayoutResult without_plan(const Layout& layout, const PlannedSteps& steps) {
  LayoutResult result;
  result.layout = layout;
  result.fits = false;
  for (const StageMemoryPlan& stage : steps.memory.stages)
    result.peak_memory = std::max(result.peak_memory, stage.planned_peak);
  const LibraryMemory& libraries = steps.base.library_memory;
  result.memory = {.allocated = result.peak_memory,
                   .reserved = result.peak_memory,
                   .context = libraries.context,
                   .communicators = libraries.communicators};
  return result;
}

DeviceMemory memory_of(const MemoryReport& report) {
  return {.allocated = report.peak,
          .reserved = report.reserved,
          .context = report.context,
          .communicators = report.communicators};
}

LayoutResult simulated(const Layout& layout, const TimedProgram& timed) {
  const StepReport report = measure(timed, simulate_without_memory_samples(timed));
  LayoutResult result{.layout = layout,
                      .step_time = report.step_time,
                      .tokens_per_s = report.tokens_per_s,
                      .mfu = report.mfu.value_or(0),
                      .bubble_fraction = report.bubble_fraction,
                      .peak_memory = report.memory.peak,
                      .memory = memory_of(report.memory),
                      .fits = report.memory.fits,
                      .times = {}};
  for (const TimeCategory category : time_categories()) {
    const Seconds time = report.breakdown[category];
    if (time > Seconds(0)) result.times.emplace_back(label_of(category), time);
  }
  return result;
}

}  // namespace

LayoutResult simulate_layout(const Scenario& base, const Layout& layout,
                             const PredictorWeights& weights) {
  const Scenario scenario = laid_out(base, layout);
  if (!layout.planned) return simulated(layout, plan_step(scenario, weights));
  const PlannedSteps steps = plan_step_memory(scenario, weights);
  return steps.memory.feasible() ? simulated(layout, steps.planned) : without_plan(layout, steps);
}

std::string packed(const LayoutResult& result) {
  Json times = Json::object();
  for (const auto& [name, time] : result.times) times[name] = time.value();
  return Json{{"step_time", result.step_time.value()},
              {"tokens_per_s", result.tokens_per_s},
              {"mfu", result.mfu},
              {"bubble", result.bubble_fraction},
              {"allocated", result.memory.allocated.value()},
              {"reserved", result.memory.reserved.value()},
              {"context", result.memory.context.value()},
              {"nccl", result.memory.communicators.value()},
              {"fits", result.fits},
              {"times", std::move(times)}}
      .dump();
}

LayoutResult unpacked(const std::string& text, const Layout& layout) {
  const Json json = Json::parse(text);
  const auto bytes = [&](const char* key) { return Bytes(json[key].get<std::int64_t>()); };
  LayoutResult result{.layout = layout,
                      .step_time = Seconds(json["step_time"].get<double>()),
                      .tokens_per_s = json["tokens_per_s"],
                      .mfu = json["mfu"],
                      .bubble_fraction = json["bubble"],
                      .peak_memory = bytes("allocated"),
                      .memory = {.allocated = bytes("allocated"),
                                 .reserved = bytes("reserved"),
                                 .context = bytes("context"),
                                 .communicators = bytes("nccl")},
                      .fits = json["fits"],
                      .times = {}};
  for (const auto& [name, time] : json["times"].items())
    result.times.emplace_back(name, Seconds(time.get<double>()));
  return result;
}

}  // namespace tessera
