#include "app/fit/fit_answer.h"

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

#include "app/fit/change_search.h"
#include "hw/units/input_error.h"
#include "hw/units/parallel_for.h"
#include "hw/units/precision.h"
#include "sim/process/answer.h"
#include "sim/process/started_call.h"
#include "sim/step/run_step.h"

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceMemory, allocated, reserved, context, communicators)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FitStep, device, capacity, time, verdict, refused)

namespace {

/// Fewer changes than this, and larger combinations are looked at.
constexpr std::size_t kEnoughChanges = 4;

std::string with_number(const char* path, std::int64_t value) {
  return std::string(path) + "=" + std::to_string(value);
}

class FitQuestion {
 public:
  FitQuestion(const FitJob& job, const PredictorWeights& weights, const FitOptions& options)
      : job_(job), scenario_(job.scenario()), weights_(weights), options_(options) {}

  FitAnswer answer() && {
    describe();
    answer_.need = memory_need(scenario_, weights_, NeedScope::all);
    simulate_and_measure();
    if (answer_.step.verdict != FitVerdict::fits) look_for_changes();
    return std::move(answer_);
  }

 private:
  void describe() {
    const GpuSpec& gpu = scenario_.cluster.node.gpu;
    answer_.name = scenario_.name;
    answer_.kind = job_.kind();
    answer_.model = scenario_.model.name;
    answer_.gpu = gpu.id;
    answer_.cluster = scenario_.cluster.id;
    answer_.framework = scenario_.step.framework.name;
    answer_.precision = name_of(scenario_.step.precision);
    answer_.gpus = scenario_.step.layout.world_size();
    answer_.options = scenario_.step;
    answer_.spread = memory_spread(scenario_);
    answer_.assumed = job_.assumed();
    answer_.ignored = job_.ignored();
    answer_.approximations = scenario_.approximations;
    if (spreads_messages(scenario_))
      answer_.approximations.push_back("times: messages spread evenly over the network's " +
                                       std::to_string(scenario_.cluster.fabric.spines) +
                                       " spines, as if it routed adaptively");
    answer_.not_simulated = changes_not_simulated(scenario_, options_.plans);
  }

  /// The step itself, and the largest sizes beside it.
  void simulate_and_measure() {
    const std::function<FitStep()> simulate = [&] { return simulated_step(scenario_, weights_); };
    StartedCall<FitStep> step(simulate);
    answer_.micro_batch = largest_micro_batch();
    if (scenario_.model.family != ModelFamily::vision) answer_.sequence = longest_sequence();
    answer_.step = base_step(std::move(step).answer());
  }

  std::size_t threads() const { return static_cast<std::size_t>(options_.jobs); }

  /// A step that may not take more than a limit ends with an error where it would.
  FitStep base_step(const ForkedAnswer<FitStep>& step) const {
    const bool may_end =
        scenario_.memory.limit > Bytes(0) || scenario_.memory.planner != MemoryPlanner::off;
    if (step.error.empty() || !may_end) return step.value();
    return {.device = answer_.need.device,
            .capacity = answer_.need.capacity,
            .time = std::nullopt,
            .verdict = FitVerdict::does_not_fit,
            .refused = step.error};
  }

  /// Nothing where the rules of scenarios forbid the size.
  std::optional<Bytes> need_with(const std::vector<std::string>& settings, NeedScope scope) const {
    try {
      return total_need(job_.with(settings), weights_, scope);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  LargestSize largest(const std::function<std::vector<std::string>(std::int64_t)>& settings,
                      SizeRange range) const {
    const Bytes capacity = answer_.need.capacity;
    const auto high = [&](Bytes bytes) { return answer_.spread.high_of(bytes); };
    const auto by = [&](NeedScope scope) -> NeedOfSize {
      return
          [this, &settings, scope](std::int64_t size) { return need_with(settings(size), scope); };
    };
    const LargestSize quick = largest_size(by(NeedScope::quick), range, capacity, high);
    if (scenario_.step.layout.pipeline == 1) return quick;
    return confirmed_size(by(NeedScope::all), quick, range, capacity, high);
  }

  /// With as many micro-batches as the job has.
  LargestSize largest_micro_batch() const {
    const std::int64_t batches = scenario_.step.micro_batches();
    const std::int64_t replicas = scenario_.step.layout.data;
    constexpr std::int64_t kMost = 65536;
    const auto settings = [&](std::int64_t size) -> std::vector<std::string> {
      return {with_number("training.micro_batch", size),
              with_number("training.micro_batches", batches),
              with_number("training.global_batch", size * replicas * batches)};
    };
    return largest(settings, {.unit = 1, .most = kMost, .first = scenario_.step.micro_batch});
  }

  /// To a sixteenth of the job's own.
  LargestSize longest_sequence() const {
    constexpr std::int64_t kLeast = 64;  ///< tokens
    constexpr std::int64_t kMost = std::int64_t{1} << 26;
    const ParallelLayout& layout = scenario_.step.layout;
    const std::int64_t length = scenario_.step.sequence_length;
    std::int64_t unit =
        std::lcm(kLeast, std::lcm<std::int64_t>(2 * layout.context, layout.sequence_parts()));
    while (unit < length / 16) unit *= 2;
    const std::int64_t positions = scenario_.model.max_positions;
    const std::int64_t most = positions > 0 ? positions : kMost;
    const auto settings = [](std::int64_t size) -> std::vector<std::string> {
      return {with_number("training.sequence_length", size)};
    };
    return largest(settings, {.unit = unit, .most = most / unit, .first = length / unit});
  }

  ChangeNeed need_of(const FitChange& change) const {
    ChangeNeed found{.change = change, .need = {}, .refused = {}};
    try {
      const Scenario changed = job_.with(change.all_settings(scenario_));
      found.need = memory_need(changed, weights_, NeedScope::quick);
      found.verdict = verdict_of(found.need->device.total(), found.need->capacity, answer_.spread);
    } catch (const std::exception& error) {
      found.refused = error.what();
    }
    return found;
  }

  /// Nothing is simulated, so that threads of this process do.
  std::vector<ChangeNeed> needs_of(const std::vector<FitChange>& changes) const {
    std::vector<ChangeNeed> needs(changes.size());
    parallel_for(
        changes.size(), [&](std::size_t i) { needs[i] = need_of(changes[i]); }, threads());
    return needs;
  }

  void look_for_changes() {
    const NeedsOfChanges needs = [this](const auto& changes) { return needs_of(changes); };
    std::vector<FitChange> singles = single_changes(scenario_);
    const auto plans = std::ranges::stable_partition(
        singles, [](const FitChange& change) { return !change.is_plan(); });
    std::vector<FitChange> chosen(plans.begin(), plans.end());
    if (!options_.plans) chosen.clear();
    singles.erase(plans.begin(), plans.end());
    const FoundChanges found =
        find_changes(scenario_, answer_.need, singles, needs, kEnoughChanges, options_.most);
    for (const ChangeNeed& each : found.refused) refuse(each.change, each.refused);
    const auto last = found.fitting.begin() + std::min(found.fitting.size(), options_.most);
    chosen.insert(chosen.end(), found.fitting.begin(), last);
    simulate(chosen);
  }

  int gpus_of(const FitChange& change) const {
    const ParallelLayout& layout = scenario_.step.layout;
    return layout.world_size() / layout.data * change.wider * change.replicas(scenario_);
  }

  void refuse(const FitChange& change, const std::string& why) {
    ChangedStep refused{change, change.all_settings(scenario_), {}, gpus_of(change)};
    refused.step.refused = why;
    answer_.refused.push_back(std::move(refused));
  }

  void simulate(const std::vector<FitChange>& changes) {
    std::vector<std::function<FitStep()>> calls;
    for (const FitChange& change : changes)
      calls.emplace_back([this, &change] {
        return simulated_step(job_.with(change.all_settings(scenario_)), weights_);
      });
    const auto answers = forked_each(
        calls, options_.jobs, [](std::size_t) {}, may_run_another_step);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (!answers[i].answer) {
        refuse(changes[i], answers[i].error);
        continue;
      }
      ChangedStep changed{changes[i], changes[i].all_settings(scenario_), *answers[i].answer,
                          gpus_of(changes[i])};
      if (changed.step.verdict != FitVerdict::does_not_fit)
        answer_.changes.push_back(std::move(changed));
    }
    std::ranges::stable_sort(answer_.changes, {},
                             [](const ChangedStep& changed) { return *changed.step.time; });
  }

  const FitJob& job_;
  const Scenario& scenario_;
  const PredictorWeights& weights_;
  const FitOptions& options_;
  FitAnswer answer_;
};

/// In the order of MemoryCategory.
constexpr std::array<std::pair<const char*, const char*>, kMemoryCategories> kPartNames{
    {{"weights", "weights"},
     {"gradients", "gradients"},
     {"optimizer", "optimizer states and master weights"},
     {"activations", "activations"},
     {"temporary", "temporary tensors"},
     {"buffers", "buffers; frozen and cast weights"},
     {"workspace", "workspaces of libraries"}}};

}  // namespace

std::vector<FitPart> parts_of(const FitAnswer& answer) {
  const DeviceMemory& device = answer.step.device;
  const CategoryBytes& tensors = answer.need.parts;
  std::vector<FitPart> parts;
  for (int c = 0; c < kMemoryCategories; ++c) {
    const auto& [key, name] = kPartNames[static_cast<std::size_t>(c)];
    parts.push_back({key, name, tensors[static_cast<MemoryCategory>(c)]});
  }
  parts.push_back(
      {"fragmentation", "fragmentation, in the allocator", device.reserved - tensors.total()});
  parts.push_back({"context", "CUDA context and loaded kernels", device.context});
  parts.push_back({"nccl", "buffers of NCCL", device.communicators});
  return parts;
}

FitAnswer answer_fit(const FitJob& job, const PredictorWeights& weights,
                     const FitOptions& options) {
  if (!job.scenario().step.split.micro_batches_per_replica.empty())
    throw InputError({"parallelism.micro_batches_per_replica",
                      "is of one layout, and other ones are tried", "remove it"});
  return FitQuestion(job, weights, options).answer();
}

}  // namespace tessera
