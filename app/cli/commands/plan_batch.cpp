#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/html/points_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/plan/memory/plan_progress.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/scenario/names.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

struct PlanBatchOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> planners;
  bool no_swap = false;
  double slowdown = 0;
  std::string format;
  std::string report_file;
};

constexpr const char* kCeiling = "(ceiling)";

struct BatchAnswer {
  std::string planner;
  std::int64_t micro_batch = 0;        ///< 0: not even one sequence fits
  std::optional<Seconds> per_sample;   ///< step time over sequences
  std::optional<DeviceMemory> memory;  ///< that the fullest GPU must have
};

/// How far all planners together are.
class BatchProgress {
 public:
  explicit BatchProgress(std::size_t planners) : planners_(planners) {}

  void planner_ended(const BatchAnswer& answer, const StatusLine& status) {
    ++ended_;
    status.tell(std::to_string(ended_) + "/" + std::to_string(planners_) + " " + answer.planner +
                ": micro-batch " + std::to_string(answer.micro_batch));
    if (answer.planner == kCeiling || answer.micro_batch <= best_) return;
    best_ = answer.micro_batch;
    best_planner_ = answer.planner;
  }

  /// "3/7 libra: micro-batch 12, 8 fits; best so far 16 (tessera); about 40 s left"
  std::string text(const std::string& at) const {
    std::string words = std::to_string(ended_ + 1) + "/" + std::to_string(planners_) + " " + at;
    if (best_ > 0) words += "; best so far " + std::to_string(best_) + " (" + best_planner_ + ")";
    if (ended_ == 0) return words;
    const double passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const double left =
        passed / static_cast<double>(ended_) * static_cast<double>(planners_ - ended_);
    return words + "; about " + std::to_string(static_cast<int>(left) + 1) + " s left";
  }

 private:
  std::size_t planners_;
  std::size_t ended_ = 0;
  std::int64_t best_ = 0;
  std::string best_planner_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The largest micro-batch with which a scenario fits, its number of micro-batches kept; from 256
/// on, one that is at most 1/128 below one that does not. For kCeiling: at which the lower bound of
/// every stage fits, which no planner can pass.
class BatchSearch {
 public:
  /// `slowest`: most time per sample; nothing: any. `status` tells how far it is.
  BatchSearch(Scenario scenario, const std::string& planner, const PredictorWeights& weights,
              std::optional<Seconds> slowest, const BatchProgress& progress, StatusLine& status)
      : progress_(progress),
        status_(status),
        scenario_(std::move(scenario)),
        planner_(planner),
        weights_(weights),
        slowest_(slowest),
        micro_batches_(scenario_.step.micro_batches()) {
    scenario_.memory.planner =
        planner == kCeiling ? MemoryPlanner::none : memory_planner_of(planner);
    scenario_.memory.thorough = false;
  }

  /// `known`: a micro-batch that fits; `most`: the largest that may.
  BatchAnswer run(std::int64_t known, std::int64_t most) {
    constexpr std::int64_t kParts = 128;
    BatchAnswer answer{.planner = planner_};
    std::int64_t fails = most + 1;
    fits_ = known;
    for (std::int64_t next = known + 1; next < fails; next *= 2)
      (try_batch(next, may_draft()) ? fits_ : fails) = next;
    while (fails - fits_ > std::max<std::int64_t>(1, fits_ / kParts)) {
      const std::int64_t middle = (fits_ + fails) / 2;
      (try_batch(middle, may_draft()) ? fits_ : fails) = middle;
    }
    answer.micro_batch = fits_;
    if (fits_ == 0 || planner_ == kCeiling) return answer;
    const bool as_fast = try_batch(fits_, false);
    if (!as_fast && may_draft()) try_batch(fits_, true);
    answer.per_sample = per_sample();
    answer.memory = steps_->memory.device();
    return answer;
  }

  static constexpr std::int64_t kMost = 1 << 16;

 private:
  /// Whether there is a plan, a draft says; how fast it is, it does not.
  bool may_draft() const { return !slowest_; }

  bool try_batch(std::int64_t micro_batch, bool drafts) {
    status_.show(progress_.text((planner_ == kCeiling ? "ceiling" : planner_) + ": micro-batch " +
                                std::to_string(micro_batch) + ", " + std::to_string(fits_) +
                                " fits"));
    scenario_.step.micro_batch = micro_batch;
    scenario_.step.global_batch = micro_batch * scenario_.step.layout.data * micro_batches_;
    steps_ = plan_step_memory(scenario_, weights_, PlanManner{.drafts = drafts});
    const PlannedStep& memory = steps_->memory;
    if (planner_ == kCeiling) {
      return std::ranges::all_of(memory.stages, [&](const StageMemoryPlan& stage) {
        return !stage.needed || stage.lower_bound <= memory.budget;
      });
    }
    return memory.feasible() && (!slowest_ || per_sample() <= *slowest_);
  }

  Seconds per_sample() const {
    const Seconds time = forked([&] { return step_time_of(steps_->planned); });
    return time / static_cast<double>(scenario_.step.global_batch);
  }

  const BatchProgress& progress_;
  StatusLine& status_;
  Scenario scenario_;
  std::string planner_;
  std::int64_t fits_ = 0;  ///< so far
  const PredictorWeights& weights_;
  std::optional<Seconds> slowest_;
  std::int64_t micro_batches_;
  std::optional<PlannedSteps> steps_;
};

double in_gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / (1 << 30);
}

/// Over what there is without a plan; "-" where not one sample fits without.
std::string ratio_text(double value, double plain, int digits) {
  return plain > 0 ? formatted("%.*f", digits, value / plain) : "-";
}

std::string batch_table(const std::vector<BatchAnswer>& answers) {
  std::string text;
  text += formatted("%-18s %11s %13s %8s %8s %11s\n", "planner", "micro-batch", "ms per sample",
                    "batch x", "time x", "memory GiB");
  const BatchAnswer& plain = answers.front();
  const double plain_time = plain.per_sample ? plain.per_sample->value() : 0;
  for (const BatchAnswer& answer : answers) {
    const std::string batch = ratio_text(static_cast<double>(answer.micro_batch),
                                         static_cast<double>(plain.micro_batch), 2);
    const auto micro_batch = static_cast<long long>(answer.micro_batch);
    if (!answer.per_sample) {
      text += formatted("%-18s %11lld %13s %8s %8s\n", answer.planner.c_str(), micro_batch, "",
                        batch.c_str(), "");
      continue;
    }
    text += formatted("%-18s %11lld %13.3f %8s %8s %11.3f\n", answer.planner.c_str(), micro_batch,
                      answer.per_sample->value() * 1e3, batch.c_str(),
                      ratio_text(answer.per_sample->value(), plain_time, 3).c_str(),
                      in_gib(answer.memory->total()));
  }
  return text;
}

nlohmann::ordered_json memory_json(const BatchAnswer& answer) {
  if (!answer.memory) return nullptr;
  return {{"allocated_bytes", answer.memory->allocated.value()},
          {"reserved_bytes", answer.memory->reserved.value()},
          {"context_bytes", answer.memory->context.value()},
          {"nccl_bytes", answer.memory->communicators.value()},
          {"device_bytes", answer.memory->total().value()}};
}

std::string batch_json(const std::vector<BatchAnswer>& answers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BatchAnswer& answer : answers)
    list.push_back({{"planner", answer.planner},
                    {"micro_batch", answer.micro_batch},
                    {"seconds_per_sample", answer.per_sample
                                               ? nlohmann::ordered_json(answer.per_sample->value())
                                               : nlohmann::ordered_json(nullptr)},
                    {"memory", memory_json(answer)}});
  return nlohmann::ordered_json{{"schema", "tessera.batch_plan/1"}, {"planners", std::move(list)}}
             .dump(2) +
         "\n";
}

PointsReport batch_points(const std::string& scenario, const std::vector<BatchAnswer>& answers) {
  PointsReport points{.title = scenario + ": the largest micro-batch by planner"};
  points.columns = {
      {"planner", 0}, {"micro-batch", 1}, {"ms per sample", -1}, {"memory [GiB]", -1}};
  for (const BatchAnswer& answer : answers) {
    points.labels.push_back(answer.planner);
    points.rows.push_back({answer.planner, answer.micro_batch,
                           answer.per_sample
                               ? nlohmann::ordered_json(answer.per_sample->value() * 1e3)
                               : nlohmann::ordered_json(nullptr),
                           answer.memory ? nlohmann::ordered_json(in_gib(answer.memory->total()))
                                         : nlohmann::ordered_json(nullptr)});
  }
  points.note = "(ceiling): what no planner can pass. A click chooses a point.";
  return points;
}

/// The ceiling is that of recomputation and copies of activations, for whole micro-batches.
bool can_pass_ceiling(const MemorySettings& settings, const std::string& planner) {
  return offloads_optimizer(memory_planner_of(planner)) || settings.split_batch > 1 ||
         settings.packing != ActivationPacking::as_it_is ||
         settings.optimizer_states != OptimizerStates::on_gpu;
}

void run_plan_batch(const PlanBatchOptions& options) {
  Scenario scenario = load_scenario(options.file, options.overrides, shipped_catalog());
  if (options.no_swap) scenario.memory.swap = false;
  const PredictorWeights weights = shipped_weights();
  std::vector<std::string> planners{"none"};
  for (const std::string& name : options.planners)
    if (name != "none") planners.push_back(name);
  if (options.planners.empty())
    for (const char* name : {"tessera", "chen_sqrt", "megatron_block", "megatron_uniform"})
      planners.emplace_back(name);
  std::vector<BatchAnswer> answers;
  StatusLine status;
  BatchProgress progress(planners.size() + 1);
  const auto search = [&](const std::string& planner, std::optional<Seconds> slowest,
                          std::int64_t known, std::int64_t most) {
    BatchSearch batches(scenario, planner, weights, slowest, progress, status);
    const BatchAnswer answer = batches.run(known, most);
    progress.planner_ended(answer, status);
    return answer;
  };
  const BatchAnswer ceiling = search(kCeiling, {}, 0, BatchSearch::kMost);
  for (const std::string& planner : planners) {
    std::optional<Seconds> slowest;
    const bool limited = options.slowdown > 0 && !answers.empty();
    if (limited && answers.front().per_sample)
      slowest = *answers.front().per_sample * options.slowdown;
    const std::int64_t known = answers.empty() ? 0 : answers.front().micro_batch;
    const std::int64_t most = can_pass_ceiling(scenario.memory, planner)
                                  ? BatchSearch::kMost
                                  : std::max(known, ceiling.micro_batch);
    answers.push_back(search(planner, slowest, known, most));
  }
  answers.push_back(ceiling);
  if (!options.report_file.empty())
    write_output_file(options.report_file,
                      points_page(batch_points(scenario.name, answers), TESSERA_VERSION));
  print(options.format == "json" ? batch_json(answers) : for_people(batch_table(answers)));
}

}  // namespace

void add_plan_batch_command(CLI::App& plan) {
  auto options = std::make_shared<PlanBatchOptions>();
  CLI::App* command = plan.add_subcommand(
      "batch", "Find the largest micro-batch that fits, without and with a memory plan");
  add_scenario_argument(*command, options->file);
  add_set_option(*command, options->overrides);
  command
      ->add_option("--planner", options->planners,
                   "besides none; repeatable (default: tessera, chen_sqrt, megatron_block, "
                   "megatron_uniform)")
      ->check(CLI::IsMember(memory_planner_names()));
  command->add_flag("--no-swap", options->no_swap, "recomputation alone");
  command
      ->add_option("--slowdown", options->slowdown,
                   "most time per sample over that without a plan (default: any)")
      ->check(CLI::Range(1.0, 1000.0));
  command->add_option("--report", options->report_file, "write the answer as an HTML page");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_plan_batch(*options); });
}

}  // namespace tessera
