#include "tests/app/explain/random_scenario.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "sim/report/metrics.h"
#include "tests/app/explain/shipped.h"

namespace tessera::test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

  std::vector<std::string> settings() {
    draw_model();
    draw_cluster();
    draw_layout();
    draw_training();
    if (chance(3)) draw_uneven_machine();
    set("collectives.fidelity", pick({"flow", "flow", "flow", "analytic", "chunk"}));
    if (chance(4)) set("collectives.slows_kernels", "false");
    if (chance(4)) set("simulation.fold.tensor", "false");
    if (chance(4)) set("simulation.fold.data", "false");
    return std::move(settings_);
  }

 private:
  // std:: distributions differ between libraries; the engine's raw output does not.
  int below(int bound) { return static_cast<int>(random_() % static_cast<std::uint64_t>(bound)); }
  bool chance(int one_in) { return below(one_in) == 0; }
  std::string pick(const std::vector<std::string>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }
  void set(const std::string& path, const std::string& value) {
    settings_.push_back(path + "=" + value);
  }
  void set(const std::string& path, int value) { set(path, std::to_string(value)); }

  /// Mostly what a framework runs, so that not too many draws are refused.
  void draw_model() {
    megatron_ = !chance(3);
    const std::vector<std::string> split = {"megatron_local", "megatron", "megatron",
                                            "megatron_deepspeed", "megatron_2022"};
    set("training.framework", pick(megatron_ ? split
                                             : std::vector<std::string>{"hf_eager", "hf_compile",
                                                                        "fsdp", "torch_compile"}));
    const std::vector<std::string> decoders = {
        "gpt2", "gpt2-large", "gpt3-xl", "llama-2-7b", "llama-3-8b", "mixtral-8x7b", "bloom-176b"};
    set("model", pick(megatron_ ? decoders
                                : std::vector<std::string>{"gpt2", "gpt2-large", "gpt3-xl",
                                                           "llama-2-7b", "llama-3-8b", "opt-1.3b",
                                                           "bert-large", "switch-xl4", "bloom-176b",
                                                           "mpt-7b", "mixtral-8x7b"}));
    layers_ = 1 << below(4);
    set("model.layers", layers_);
  }

  void draw_cluster() {
    set("cluster", pick({"hgx-h100-4", "dgx-h100", "dgx-a100", "dgx-1-v100", "a100-pcie-4",
                         "dgx-h100-x2", "dgx-a100-x2", "dgx-h100-x8-rail", "dgx-h100-x8-clos-4to1",
                         "dgx-h100-x8-dragonfly", "dgx-h100-x8-torus", "gh200-x4", "efa-p4d-x4",
                         "gb200-nvl72", "l4-pcie-8", "t4-pcie-4"}));
  }

  void draw_layout() {
    if (megatron_) {
      tensor_ = 1 << below(4);
      pipeline_ = 1 << below(3);
    }
    data_ = 1 + below(6);
    set("parallelism.tensor", tensor_);
    set("parallelism.pipeline", pipeline_);
    set("parallelism.data", data_);
    if (megatron_) {
      if (chance(4)) {
        set("parallelism.sequence_parallel", "true");
        if (chance(2)) set("training.framework.overlap_tensor_products", "true");
      }
      if (chance(6)) draw_context();
      if (chance(6)) draw_experts();
    }
    if (chance(3)) {
      set("training.data_parallel.sharding",
          pick({"optimizer", "optimizer", "gradients", "parameters"}));
    }
    if (chance(4)) set("training.data_parallel.overlap_gradients", "true");
    if (chance(8)) set("training.data_parallel.overlap_parameters", "true");
  }

  void draw_experts() {
    set("parallelism.expert", 2);
    if (chance(3)) set("parallelism.expert_tensor", 1);
  }

  void draw_context() {
    context_ = 2;
    set("parallelism.context", context_);
    set("parallelism.context_attention", pick({"ring", "all_gather", "ulysses"}));
  }

  void draw_schedule() {
    if (pipeline_ == 1) return;
    const std::string schedule = pick(
        {"gpipe", "one_f_one_b", "one_f_one_b", "interleaved_1f1b", "zb_h1", "zb_h2", "dualpipe"});
    set("training.schedule", schedule);
    if (schedule != "interleaved_1f1b") return;
    set("parallelism.virtual_stages", 2 + below(2));
    if (!chance(3)) return;
    set("training.data_parallel.overlap_parameters", "true");
    set("training.data_parallel.align_parameters", "true");
  }

  void draw_training() {
    set("training.mode",
        pick({"training", "training", "training", "forward_backward", "inference"}));
    set("training.kernels", pick({"eager", "eager", "fused"}));
    set("training.precision", pick({"fp32", "bf16", "bf16", "fp16", "tf32"}));
    set("training.recompute", pick({"none", "none", "selective", "full"}));
    draw_schedule();
    set("training.clip_gradients", pick({"true", "false"}));
    set("training.sequence_length", 128 << below(4));
    const int micro_batch = 1 << below(3);
    const int micro_batches = 1 + below(8);
    set("training.micro_batches", micro_batches);
    set("training.global_batch", micro_batch * micro_batches * data_);
  }

  void draw_uneven_machine() {
    if (chance(2)) set("perturbation.kernel_jitter", "0." + std::to_string(1 + below(3)));
    set("perturbation.seed", below(1000));
    if (chance(2)) {
      set("perturbation.gpus", "[{ranks: \"" +
                                   std::to_string(below(tensor_ * pipeline_ * data_ * context_)) +
                                   "\", slowdown: " + pick({"1.2", "0.9", "3"}) + "}]");
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> settings_;
  bool megatron_ = false;  ///< models that are split over ranks
  int layers_ = 1;
  int tensor_ = 1;
  int pipeline_ = 1;
  int data_ = 1;
  int context_ = 1;
};

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("report: ") + what);
}

/// One verdict, by what the device needs.
void check(const MemoryReport& memory) {
  require(memory.device == memory.reserved + memory.context + memory.communicators,
          "device memory");
  require(memory.fits == (memory.device <= memory.capacity), "fits");
  for (const RankMemory& rank : memory.per_rank) {
    require(rank.device == rank.reserved + memory.context + memory.communicators, "rank's memory");
    require(rank.fits == (rank.device <= memory.capacity), "rank fits");
    require(rank.headroom == memory.capacity - rank.device, "headroom");
  }
}

void check(const StepReport& report) {
  const double step = report.step_time.value();
  require(std::isfinite(step) && step > 0, "step time");
  require(std::isfinite(report.tokens_per_s) && report.tokens_per_s > 0, "tokens per second");
  require(!report.mfu || (std::isfinite(*report.mfu) && *report.mfu >= 0), "mfu");
  require(report.mfu.value_or(0) <= report.hfu.value_or(0) * (1 + 1e-12), "mfu above hfu");
  require(report.hfu.value_or(0) <= 1 || report.counted.winograd > 0 ||
              report.counted.other_precisions > 0,
          "utilization above the peak, and nothing that explains it");
  require(report.breakdown.exposed_communication() + report.breakdown.exposed_copies() <=
              report.step_time * (1 + 1e-9),
          "exposed time");
  require(report.bubble_fraction >= 0 && report.bubble_fraction <= 1, "bubble fraction");
  for (const TimeBreakdown& breakdown : report.by_rank) {
    require(std::abs(breakdown.total().value() - step) <= 1e-9 * step + 1e-12, "breakdown's sum");
  }
  for (const RankMemory& rank : report.memory.per_rank) {
    require(rank.peak >= rank.static_bytes && rank.peak > Bytes(0), "peak memory");
    require(rank.reserved >= rank.peak, "reserved below allocated");
  }
  check(report.memory);
}

/// "ran GPUS SECONDS" or "refused ERROR"; throws where the simulation fails.
std::string run_one(std::uint64_t seed, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  Scenario scenario;
  std::optional<TimedProgram> timed;
  try {
    scenario = load_scenario(TESSERA_SOURCE_DIR "/configs/scenarios/gpt2-large_4xh100_dp4.yaml",
                             random_settings(seed), shipped_configs());
    scenario.simulation.time_limit = Seconds(seconds);
    timed = plan_step(scenario, trained());
  } catch (const InputError& error) {
    return std::string("refused ") + error.what();
  }
  check(measure(*timed, simulate(*timed)));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return "ran " + std::to_string(scenario.step.layout.world_size()) + " " +
         std::to_string(took.count());
}

RandomRun parsed(const ForkedOutcome& outcome) {
  RandomRun run;
  if (!outcome.error.empty()) {
    run.text = outcome.error;
  } else if (outcome.result.starts_with("ran ")) {
    run.outcome = RandomRun::Outcome::ran;
    std::istringstream figures(outcome.result.substr(4));
    figures >> run.gpus >> run.wall_seconds;
  } else {
    run.outcome = RandomRun::Outcome::refused;
    run.text = outcome.result;
  }
  return run;
}

}  // namespace

namespace {

/// Settings that planning or the engine refuse, or not.
std::vector<std::string> settings_to_check(std::uint64_t seed) {
  std::vector<std::string> settings = random_settings(seed);
  std::mt19937_64 random(seed + 1);
  const auto one_of = [&](const std::vector<std::string>& choices) {
    settings.push_back(choices[static_cast<std::size_t>(random() % choices.size())]);
  };
  one_of({"memory.planner=off", "memory.planner=tessera", "memory.planner=nonsense",
          "memory.planner=optimizer_offload", "memory.planner=megatron_uniform"});
  one_of({"memory.swap=true", "memory.swap=false"});
  one_of({"memory.budget=0 B", "memory.budget=4GiB", "memory.budget=1KiB"});
  one_of({"collectives.tuner=v2_8", "collectives.fidelity=analytic",
          "collectives.overrides=[{algorithm: nvls}]", "collectives.overrides=[{algorithm: tree}]",
          "training.global_batch=1000000", "predictor.form=neusight"});
  settings.emplace_back("memory.thorough=false");
  return settings;
}

/// What refuses the settings, empty where nothing does: loading, planning and check_simulation(),
/// or those and the simulation itself.
std::string refusal_of(const std::vector<std::string>& settings, bool simulates) {
  try {
    const Scenario scenario =
        load_scenario(TESSERA_SOURCE_DIR "/configs/scenarios/gpt2-large_4xh100_dp4.yaml", settings,
                      shipped_configs());
    const TimedProgram timed = plan_step(scenario, trained());
    if (simulates) {
      measure(timed, simulate(timed));
    } else {
      check_simulation(timed);
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::vector<RefusalVerdicts> refusals_of_random_scenarios(std::uint64_t first_seed, int count,
                                                          int jobs) {
  trained();
  std::vector<std::function<std::string()>> calls;
  for (int i = 0; i < 2 * count; ++i) {
    calls.emplace_back([seed = first_seed + static_cast<std::uint64_t>(i / 2), i] {
      return refusal_of(settings_to_check(seed), i % 2 == 1);
    });
  }
  const std::vector<ForkedOutcome> outcomes = run_forked_each(calls, jobs, [](std::size_t) {});
  std::vector<RefusalVerdicts> verdicts;
  for (std::size_t i = 0; i < outcomes.size(); i += 2)
    verdicts.push_back(
        {outcomes[i].result + outcomes[i].error, outcomes[i + 1].result + outcomes[i + 1].error});
  return verdicts;
}

std::vector<std::string> random_settings(std::uint64_t seed) {
  return Draw(seed).settings();
}

std::vector<RandomRun> run_random_scenarios(std::uint64_t first_seed, int count, int jobs,
                                            double seconds) {
  trained();  // loaded once, before the forks
  std::vector<std::function<std::string()>> calls;
  for (int i = 0; i < count; ++i) {
    calls.emplace_back([seed = first_seed + static_cast<std::uint64_t>(i), seconds] {
      return run_one(seed, seconds);
    });
  }
  std::vector<RandomRun> runs;
  for (const ForkedOutcome& outcome : run_forked_each(calls, jobs, [](std::size_t) {})) {
    runs.push_back(parsed(outcome));
  }
  return runs;
}

}  // namespace tessera::test
