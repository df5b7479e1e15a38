#include "sim/search/layout_result.h"

#include <nlohmann/json.hpp>

#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/report/metrics.h"

namespace tessera {

using Json = nlohmann::ordered_json;

LayoutResult simulate_layout(const Scenario& base, const Layout& layout,
                             const PredictorWeights& weights) {
  const TimedProgram timed = plan_step(laid_out(base, layout), weights);
  const StepReport report = measure(timed, simulate_without_memory_samples(timed));
  LayoutResult result{.layout = layout,
                      .step_time = report.step_time,
                      .tokens_per_s = report.tokens_per_s,
                      .mfu = report.mfu.value_or(0),
                      .bubble_fraction = report.bubble_fraction,
                      .peak_memory = report.memory.peak,
                      .fits = report.memory.fits,
                      .times = {}};
  for (const TimeCategory category : time_categories()) {
    const Seconds time = report.breakdown[category];
    if (time > Seconds(0)) result.times.emplace_back(label_of(category), time);
  }
  return result;
}

std::string packed(const LayoutResult& result) {
  Json times = Json::object();
  for (const auto& [name, time] : result.times) times[name] = time.value();
  return Json{{"step_time", result.step_time.value()},
              {"tokens_per_s", result.tokens_per_s},
              {"mfu", result.mfu},
              {"bubble", result.bubble_fraction},
              {"peak", result.peak_memory.value()},
              {"fits", result.fits},
              {"times", std::move(times)}}
      .dump();
}

LayoutResult unpacked(const std::string& text, const Layout& layout) {
  const Json json = Json::parse(text);
  LayoutResult result{.layout = layout,
                      .step_time = Seconds(json["step_time"].get<double>()),
                      .tokens_per_s = json["tokens_per_s"],
                      .mfu = json["mfu"],
                      .bubble_fraction = json["bubble"],
                      .peak_memory = Bytes(json["peak"].get<std::int64_t>()),
                      .fits = json["fits"],
                      .times = {}};
  for (const auto& [name, time] : json["times"].items())
    result.times.emplace_back(name, Seconds(time.get<double>()));
  return result;
}

}  // namespace tessera
