#include "app/search/layout_space.h"

#include <algorithm>
#include <numeric>

#include "hw/units/input_error.h"
#include "sim/scenario/rules/check_scenario.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

template <class Number>
std::vector<Number> divisors(Number whole) {
  std::vector<Number> found;
  for (Number part = 1; part <= whole; ++part)
    if (whole % part == 0) found.push_back(part);
  return found;
}

/// `wanted`, or `possible` where nothing is wanted.
template <class Value>
std::vector<Value> either(const std::vector<Value>& wanted, const std::vector<Value>& possible) {
  return wanted.empty() ? possible : wanted;
}

bool says_how_to_split(const StageSplit& split) {
  return !split.layers_per_stage.empty() || split.first_stage_layers > 0 ||
         split.last_stage_layers > 0 || split.embedding_as_layer || split.head_as_layer;
}

/// What a framework shares over GPUs beside the batch.
struct Splits {
  bool layers = false, stages = false, tokens = false, experts = false;
};
Splits splits_of(const FrameworkProfile& profile) {
  const bool megatron = profile.modules == ModuleTree::megatron;
  return {.layers = megatron || profile.tensor_plan != TensorPlan::whole,
          .stages = megatron || profile.splits_stages,
          .tokens = megatron || profile.splits_sequences,
          .experts = megatron};
}

class Enumeration {
 public:
  Enumeration(const Scenario& base, const LayoutSpace& space, const std::function<bool()>& stop)
      : base_(base),
        scenario_(base),
        space_(space),
        stop_(stop),
        gpus_(space.gpus > 0 ? space.gpus : base.cluster.gpu_count()),
        splits_(splits_of(base.step.framework)),
        by_fully_sharded_(base.step.framework.data_parallel.sharding == Sharding::parameters),
        gathers_units_(by_fully_sharded_ || base.step.data_parallel.gather_units),
        has_split_(says_how_to_split(base.step.split)) {}

  LayoutList run() && {
    const ModelSpec& model = base_.model;
    const std::int64_t keys = std::gcd(model.kv_heads, model.window_kv_heads);
    const auto heads = static_cast<int>(
        std::gcd(std::gcd(model.heads, keys), std::gcd(model.ffn, model.shared_ffn)));
    for (const int tensor : either(space_.tensor, splits_.layers ? divisors(heads) : kOne))
      for (const int pipeline : either(space_.pipeline, splits_.stages ? divisors(gpus_) : kOne))
        for (const int context : either(space_.context, splits_.tokens ? context_sizes() : kOne))
          add_sizes(tensor, pipeline, context);
    std::ranges::sort(list_.legal);
    return std::move(list_);
  }

 private:
  static inline const std::vector<int> kOne = {1};
  static inline const std::vector<bool> kBoth = {false, true}, kOff = {false};

  std::vector<int> context_sizes() const {
    constexpr std::int64_t kTokens = 2048;  // less leaves more communication than there is to gain
    const std::int64_t most = std::max<std::int64_t>(1, base_.step.sequence_length / kTokens);
    std::vector<int> sizes = divisors(gpus_);
    std::erase_if(sizes, [&](int size) { return size > most; });
    return sizes;
  }

  void add_sizes(int tensor, int pipeline, int context) {
    const std::int64_t together = std::int64_t{tensor} * pipeline * context;
    if (together > gpus_ || gpus_ % together != 0) return;
    Layout layout{.tensor = tensor, .pipeline = pipeline, .context = context};
    layout.data = static_cast<int>(gpus_ / together);
    if (base_.step.global_batch % layout.data != 0) return;
    const bool has_experts = splits_.experts && base_.model.experts > 0;
    const auto experts = has_experts ? divisors(static_cast<int>(base_.model.experts)) : kOne;
    for (const int expert : either(space_.expert, experts)) {
      layout.expert = expert;
      if (layout.data * context % expert == 0) add_schedules(layout);
    }
  }

  void add_schedules(Layout layout) {
    using enum PipelineSchedule;
    static const std::vector<PipelineSchedule> kAll = {
        gpipe, one_f_one_b, interleaved_1f1b, zb_h1, zb_h2, dualpipe, zbv};
    static const std::vector<PipelineSchedule> kWithoutPipeline = {one_f_one_b};
    const auto schedules = layout.pipeline == 1 ? kWithoutPipeline : either(space_.schedules, kAll);
    for (const PipelineSchedule schedule : schedules) {
      if (schedule == zbv && !base_.step.framework.splits_stages) continue;
      layout.schedule = schedule;
      for (const bool ends : layout.pipeline > 1 && !has_split_ ? kBoth : kOff) {
        layout.ends_as_layers = ends;
        add_chunks(layout);
      }
    }
  }

  void add_chunks(Layout layout) {
    const std::int64_t places = base_.model.layers + (layout.ends_as_layers ? 2 : 0);
    if (layout.ends_as_layers && places % layout.pipeline != 0) return;
    const auto most = static_cast<int>(std::max<std::int64_t>(1, places / layout.pipeline));
    for (const int chunks : chunks_of(layout.schedule, most)) {
      layout.virtual_stages = chunks;
      add_batches(layout);
    }
  }

  /// Model chunks that a stage may hold, up to `most`.
  std::vector<int> chunks_of(PipelineSchedule schedule, int most) const {
    if (schedule == PipelineSchedule::zbv) return {2};
    if (schedule != PipelineSchedule::interleaved_1f1b) return kOne;
    std::vector<int> chunks = either(space_.virtual_stages, divisors(most));
    std::erase(chunks, 1);
    return chunks;
  }

  void add_batches(Layout layout) {
    const std::int64_t per_replica = base_.step.global_batch / layout.data;
    for (const std::int64_t size : either(space_.micro_batches, divisors(per_replica))) {
      if (per_replica % size != 0) continue;
      layout.micro_batch = size;
      add_memory_choices(layout);
    }
  }

  void add_memory_choices(Layout layout) {
    static const std::vector<Recompute> kRecompute = {Recompute::none, Recompute::selective,
                                                      Recompute::full};
    const bool replicated = layout.data * layout.context > 1;
    const std::vector<Sharding> shardings = replicated
                                                ? either(space_.sharding, shardings_of_framework())
                                                : std::vector{Sharding::none};
    for (const bool sequence : layout.tensor > 1 ? either(space_.sequence_parallel, kBoth) : kOff) {
      for (const Recompute recompute : either(space_.recompute, kRecompute)) {
        for (const Sharding sharding : shardings) {
          layout.sequence_parallel = sequence;
          layout.recompute = recompute;
          layout.sharding = sharding;
          layout.gather_units = gathers_units_ && sharding == Sharding::gradients;
          add(layout);
        }
      }
    }
  }

  /// FSDP has no ZeRO-1.
  std::vector<Sharding> shardings_of_framework() const {
    std::vector<Sharding> all = {Sharding::none, Sharding::optimizer, Sharding::gradients,
                                 Sharding::parameters};
    if (by_fully_sharded_) std::erase(all, Sharding::optimizer);
    return all;
  }

  void add(Layout layout) {
    scenario_.memory = base_.memory;
    check(layout);
    if (!space_.plans || !can_be_planned(layout)) return;
    layout.planned = true;
    scenario_.memory = with_plan(base_.memory);
    check(layout);
  }

  /// Asked of every so many layouts, some milliseconds of work.
  bool stopped() {
    constexpr std::int64_t kBetween = 512;
    if (list_.complete && list_.tried % kBetween == 0) list_.complete = !stop_();
    return !list_.complete;
  }

  void check(const Layout& layout) {
    if (stopped()) return;
    ++list_.tried;
    scenario_.step.split = base_.step.split;
    apply(layout, scenario_.step);
    if (is_legal(scenario_)) {
      list_.legal.push_back(layout);
    } else {
      ++list_.invalid;
    }
  }

  const Scenario& base_;
  Scenario scenario_;  ///< laid out in turn
  const LayoutSpace& space_;
  const std::function<bool()>& stop_;
  int gpus_;
  Splits splits_;
  bool by_fully_sharded_;  ///< the framework shards by FSDP
  bool gathers_units_;     ///< with Sharding::gradients
  bool has_split_;         ///< the scenario says how to split pipelines
  LayoutList list_;
};

}  // namespace

bool is_legal(const Scenario& scenario) {
  return check_scenario(scenario).empty();
}

bool can_be_planned(const Layout& layout) {
  return layout.recompute == Recompute::none;
}

LayoutList legal_layouts(const Scenario& base, const LayoutSpace& space,
                         const std::function<bool()>& stop) {
  return Enumeration(base, space, stop).run();
}

}  // namespace tessera
