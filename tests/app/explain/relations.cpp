#include "tests/app/explain/relations.h"

#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "app/explain/faster.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "sim/report/metrics.h"
#include "tests/app/explain/random_scenario.h"
#include "tests/app/explain/shipped.h"

namespace tessera::test {
namespace {

constexpr double kSecondsPerRun = 60;
/// Sums of other terms in another order.
constexpr double kRounding = 1e-9;

struct Variant {
  std::string change;
  Direction direction = Direction::no_shorter;
  Scenario scenario;
  double tolerance = kRounding;  ///< relative
  bool needs_no_less_memory = false;
};

struct StepFigures {
  double seconds = 0;
  double peak = 0;  ///< [bytes] of the fullest GPU
};

Scenario load(std::vector<std::string> settings) {
  settings.emplace_back("perturbation.kernel_jitter=0");
  Scenario scenario =
      load_scenario(TESSERA_SOURCE_DIR "/configs/scenarios/gpt2-large_4xh100_dp4.yaml", settings,
                    shipped_configs());
  scenario.simulation.time_limit = Seconds(kSecondsPerRun);
  return scenario;
}

/// Empty where the scenario cannot be simulated.
std::optional<StepFigures> step_figures(const Scenario& scenario) {
  const std::string text = run_forked([&]() -> std::string {
    try {
      const TimedProgram timed = plan_step(scenario, trained());
      const Timeline timeline = simulate(timed);
      std::ostringstream out;
      out << std::hexfloat << timeline.step_time.value() << " "
          << measure(timed, timeline).memory.peak.value();
      return out.str();
    } catch (const InputError&) {
      return "";
    }
  });
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  return StepFigures{seconds, std::strtod(end, nullptr)};
}

/// The same with a field at twice its value, which takes no less time and no less memory; what is
/// refused is left out.
void add_larger(const std::vector<std::string>& settings, const std::string& field,
                std::int64_t value, std::vector<Variant>& variants) {
  if (value <= 0) return;
  std::vector<std::string> larger = settings;
  larger.push_back(field + "=" + std::to_string(2 * value));
  try {
    variants.push_back({.change = "twice the " + field.substr(field.find('.') + 1),
                        .direction = Direction::no_shorter,
                        .scenario = load(larger),
                        .needs_no_less_memory = true});
  } catch (const InputError&) {
  }
}

void add_machines(const Scenario& base, std::vector<Variant>& variants) {
  for (const Resource resource : all_resources()) {
    const std::string name(label_of(resource));
    variants.push_back({name + " x 2", Direction::no_longer, with_faster(base, resource, 2)});
    variants.push_back({name + " x 0.5", Direction::no_shorter, with_faster(base, resource, 0.5)});
  }
}

/// Figures of a GPU that with_faster() changes together, or not at all.
void add_gpus(const Scenario& base, std::vector<Variant>& variants) {
  // Stated peaks and clocks fit each other to 1 % (predictor/gpu/sm_rate.cpp), T4's to 1.5 %.
  constexpr double kPeaks = 0.016;
  const auto add = [&](const char* change, Direction direction, auto alter) {
    Scenario scenario = base;
    alter(scenario.cluster.node.gpu);
    variants.push_back({change, direction, std::move(scenario), kPeaks});
  };
  const auto scale_peaks = [](GpuSpec& gpu, double factor) {
    for (FlopsPerSecond* peak : {&gpu.fp32, &gpu.tf32, &gpu.bf16, &gpu.fp16, &gpu.fp8})
      *peak = *peak * factor;
  };
  add("peaks x 2", Direction::no_longer, [&](GpuSpec& gpu) { scale_peaks(gpu, 2); });
  add("peaks x 0.5", Direction::no_shorter, [&](GpuSpec& gpu) { scale_peaks(gpu, 0.5); });
  add("half the SMs", Direction::no_shorter, [](GpuSpec& gpu) { gpu.sm_count /= 2; });
}

std::vector<Variant> variants_of(const Scenario& base, const std::vector<std::string>& settings) {
  std::vector<Variant> variants;
  add_larger(settings, "model.layers", base.model.layers, variants);
  add_larger(settings, "model.ffn", base.model.ffn, variants);
  add_larger(settings, "model.vocab", base.model.vocab, variants);
  add_larger(settings, "training.sequence_length", base.step.sequence_length, variants);
  add_machines(base, variants);
  add_gpus(base, variants);
  return variants;
}

bool holds(const Variant& variant, double before, double after) {
  return variant.direction == Direction::no_shorter ? after >= before * (1 - variant.tolerance)
                                                    : after <= before * (1 + variant.tolerance);
}

/// Without what the exceptions that are right come from:
/// - NCCL chooses algorithms and protocols by estimates of its own. On links of twice the rate, two
///   H100 sum 1.5 MiB with the protocol simple in 23.8 us, where they took LL and 19.8 us.
/// - Flows share links. Where many meet on a few links of an oversubscribed fabric, a slower PCIe
///   slot holds back the flows that nothing waits for, and those that the step waits for end
///   sooner.
/// - A collective slows the kernels beside it; faster kernels meet it at other times.
Scenario undisturbed(Scenario scenario) {
  for (int i = 0; i < kGroupKindCount; ++i) {
    const GroupKind group = static_cast<GroupKind>(i);
    const bool exchanges = group == GroupKind::expert || group == GroupKind::context;
    scenario.collectives.overrides.push_back(
        {.group = group,
         .algorithm = exchanges ? AlgorithmChoice::tuner : AlgorithmChoice::ring,
         .protocol = ProtocolChoice::simple});
  }
  scenario.collectives.fidelity = NetworkFidelity::analytic;
  scenario.collectives.slows_kernels = false;
  return scenario;
}

bool takes_the_right_time_undisturbed(const Scenario& base, const Variant& variant) {
  const auto before = step_figures(undisturbed(base));
  const auto after = step_figures(undisturbed(variant.scenario));
  return before && after && holds(variant, before->seconds, after->seconds);
}

/// Gradients wait for their turn to be reduced, and gathered weights for their use: the more, the
/// shorter the computation beside a collective is.
Scenario with_instant_messages(Scenario scenario) {
  for (const Resource link : {Resource::nvlink, Resource::pcie, Resource::network})
    scenario = with_faster(scenario, link, 1e4);
  return with_faster(undisturbed(std::move(scenario)), Resource::latency, 1e4);
}

bool needs_no_less_without_waiting(const Scenario& base, const Variant& variant) {
  const auto before = step_figures(with_instant_messages(base));
  const auto after = step_figures(with_instant_messages(variant.scenario));
  return before && after && after->peak >= before->peak;
}

/// "CHECKED", then a line "BEFORE AFTER CHANGE" for each relation that is broken; empty: refused.
std::string run_one(std::uint64_t seed) {
  const std::vector<std::string> settings = random_settings(seed);
  std::optional<Scenario> base;
  try {
    base = load(settings);
  } catch (const InputError&) {
    return "";
  }
  const std::optional<StepFigures> before = step_figures(*base);
  if (!before) return "";
  int checked = 0;
  std::ostringstream broken;
  for (const Variant& variant : variants_of(*base, settings)) {
    const std::optional<StepFigures> after = step_figures(variant.scenario);
    if (!after) continue;
    ++checked;
    if (!holds(variant, before->seconds, after->seconds) &&
        !takes_the_right_time_undisturbed(*base, variant))
      broken << before->seconds << " " << after->seconds << " " << variant.change << ", s\n";
    if (variant.needs_no_less_memory && after->peak < before->peak &&
        !needs_no_less_without_waiting(*base, variant))
      broken << before->peak << " " << after->peak << " " << variant.change << ", bytes\n";
  }
  return std::to_string(checked) + "\n" + broken.str();
}

RelationsRun parsed(const ForkedOutcome& outcome) {
  RelationsRun run{.error = outcome.error};
  run.refused = run.error.empty() && outcome.result.empty();
  std::istringstream lines(outcome.result);
  std::string line;
  if (std::getline(lines, line)) run.checked = std::atoi(line.c_str());
  while (std::getline(lines, line)) {
    BrokenRelation broken;
    std::istringstream words(line);
    words >> broken.before >> broken.after >> std::ws;
    std::getline(words, broken.change);
    run.broken.push_back(broken);
  }
  return run;
}

}  // namespace

std::vector<RelationsRun> run_relations(std::uint64_t first_seed, int count, int jobs) {
  trained();  // loaded once, before the forks
  shipped_configs();
  std::vector<std::function<std::string()>> calls;
  for (int i = 0; i < count; ++i)
    calls.emplace_back(
        [seed = first_seed + static_cast<std::uint64_t>(i)] { return run_one(seed); });
  std::vector<RelationsRun> runs;
  for (const ForkedOutcome& outcome : run_forked_each(calls, jobs, [](std::size_t) {}))
    runs.push_back(parsed(outcome));
  return runs;
}

}  // namespace tessera::test
