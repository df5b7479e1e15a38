#include "app/fit/fit_change.h"

#include <algorithm>
#include <array>
#include <utility>

#include "workloads/sharding.h"

namespace tessera {
namespace {

using Settings = std::vector<std::string>;

std::string setting(const std::string& path, std::int64_t value) {
  return path + "=" + std::to_string(value);
}

/// The profile's frozen weights may be bitsandbytes'.
bool has_four_bit_weights(const StepOptions& step) {
  return step.framework.modules == ModuleTree::hugging_face && !step.framework.fused_gate;
}

class SingleChanges {
 public:
  explicit SingleChanges(const Scenario& scenario) : scenario_(scenario), step_(scenario.step) {}

  std::vector<FitChange> all() && {
    add_micro_batches();
    if (step_.mode == StepMode::training) add_sharding();
    if (step_.mode != StepMode::inference) add_recomputation();
    add_layouts();
    add_experts();
    if (step_.mode != StepMode::inference) add_offload();
    if (step_.mode == StepMode::training) add_eight_bits();
    if (step_.mode == StepMode::training) add_host_update();
    if (step_.mode == StepMode::training) add_adapters();
    return std::move(changes_);
  }

 private:
  void add(std::string name, ChangeKind kind, Settings settings, int cost) {
    changes_.push_back(
        {.name = std::move(name), .kinds = {kind}, .settings = std::move(settings), .cost = cost});
  }

  /// Smaller ones that cut the batch of a replica evenly, by half or more each.
  void add_micro_batches() {
    const std::int64_t of_replica = step_.global_batch / step_.layout.data;
    std::int64_t last = step_.micro_batch;
    int cost = 0;
    for (std::int64_t size = step_.micro_batch / 2; size >= 1; --size) {
      if (of_replica % size != 0 || 2 * size > last) continue;
      last = size;
      add("micro-batch " + std::to_string(size), ChangeKind::micro_batch, {}, ++cost);
      changes_.back().micro_batch = size;
    }
  }

  void add_sharding() {
    if (!step_.layout.has_replicas()) return;
    add_undivided_groups();
    constexpr std::array<std::pair<Sharding, const char*>, 3> kLevels{
        {{Sharding::optimizer, "optimizer"},
         {Sharding::gradients, "gradients"},
         {Sharding::parameters, "parameters"}}};
    for (const auto& [sharding, word] : kLevels) {
      if (sharding <= step_.data_parallel.sharding) continue;
      const int level = static_cast<int>(sharding);
      add("ZeRO-" + std::to_string(level), ChangeKind::sharding,
          {std::string("training.data_parallel.sharding=") + word}, level == 3 ? 3 : level);
    }
  }

  /// Hybrid sharding holds a copy in every group.
  void add_undivided_groups() {
    const auto& data = step_.data_parallel;
    const bool has_groups = data.shard_group > 0 && data.shard_group < step_.layout.replicas();
    if (!has_groups || data.sharding == Sharding::none) return;
    add("shards over all replicas, no groups (full instead of hybrid sharding)",
        ChangeKind::sharding, {"training.data_parallel.shard_group=0"}, 3);
  }

  void add_recomputation() {
    if (step_.recompute < Recompute::selective)
      add("recompute selective", ChangeKind::recompute, {"training.recompute=selective"}, 2);
    if (step_.recompute < Recompute::full)
      add("recompute full", ChangeKind::recompute, {"training.recompute=full"}, 4);
  }

  /// Replicas of 2, 4 and 8 times the GPUs.
  void add_layouts() {
    const ParallelLayout& layout = step_.layout;
    for (const int factor : {2, 4, 8}) {
      add_layout("tp", ChangeKind::tensor, "parallelism.tensor", layout.tensor, factor);
      if (scenario_.model.layers % (layout.pipeline * factor) == 0)
        add_layout("pp", ChangeKind::pipeline, "parallelism.pipeline", layout.pipeline, factor);
      add_layout("cp", ChangeKind::context, "parallelism.context", layout.context, factor);
    }
  }
  void add_layout(const std::string& name, ChangeKind kind, const char* path, int size,
                  int factor) {
    FitChange change{.name = name + " " + std::to_string(size * factor), .kinds = {kind}};
    change.wider = factor;
    change.cost = factor / 2 + (kind == ChangeKind::tensor ? 2 : 3);
    change.settings = {setting(path, static_cast<std::int64_t>(size) * factor)};
    const FrameworkProfile& profile = step_.framework;
    const bool by_sequence =
        profile.modules == ModuleTree::megatron || profile.tensor_plan == TensorPlan::sequence;
    if (kind == ChangeKind::tensor && by_sequence)
      change.settings.emplace_back("parallelism.sequence_parallel=true");
    const std::int64_t gpus = static_cast<std::int64_t>(change.replicas(scenario_)) *
                              step_.layout.world_size() / step_.layout.data * factor;
    if (gpus <= scenario_.cluster.gpu_count()) changes_.push_back(std::move(change));
  }

  /// Experts over ranks that hold copies of them: no wider replicas.
  void add_experts() {
    if (scenario_.model.experts == 0) return;
    const ParallelLayout& layout = step_.layout;
    constexpr int kMost = 64;
    int cost = 1;
    for (int size = 2 * layout.expert; size <= kMost; size *= 2) {
      if (scenario_.model.experts % size != 0 || layout.expert_places() % size != 0) return;
      add("ep " + std::to_string(size), ChangeKind::expert, {setting("parallelism.expert", size)},
          ++cost);
    }
  }

  void add_offload() {
    if (scenario_.memory.planner != MemoryPlanner::off) return;
    const Settings quick{"memory.thorough=false"};
    const auto planner = [&](const char* name) {
      return Settings{std::string("memory.planner=") + name, quick.front()};
    };
    if (step_.mode == StepMode::training)
      add("optimizer states in host memory", ChangeKind::offload, planner("optimizer_offload"), 5);
    add("activations offloaded", ChangeKind::offload, planner("belady"), 5);
    add("memory plan (recompute and offload)", ChangeKind::offload, planner("tessera"), 5);
  }

  /// Weights too, which layers fetch when they need them.
  void add_host_weights() {
    const std::string shards = "training.data_parallel.sharding=parameters";
    add("weights and optimizer on the CPU (FSDP's CPU offload, ZeRO-3's offload_param)",
        ChangeKind::optimizer,
        {"training.offload_optimizer=true", "training.offload_parameters=true"}, 8);
    if (gathers_units(step_)) return;
    changes_.back().settings.push_back(shards);
    if (!step_.layout.has_replicas()) return;
    changes_.back().kinds = {ChangeKind::sharding, ChangeKind::optimizer};
    std::ranges::sort(changes_.back().kinds);
  }

  /// Adam on the CPU, where the time that takes is known.
  void add_host_update() {
    const bool known = scenario_.cluster.node.host_memory_bandwidth > BytesPerSecond(0);
    const bool alone = step_.layout.pipeline == 1 && scenario_.memory.planner == MemoryPlanner::off;
    const bool sees = scenario_.model.family == ModelFamily::vision;
    const bool updates = step_.optimizer == OptimizerKind::adam && !step_.offload_optimizer;
    if (!updates || !known || !alone || sees) return;
    add_host_weights();
    add("optimizer on the CPU (ZeRO-Offload)", ChangeKind::optimizer,
        {"training.offload_optimizer=true"}, 6);
    if (step_.data_parallel.sharding > Sharding::none || !step_.layout.has_replicas()) return;
    changes_.back().name = "ZeRO-2, optimizer on the CPU (ZeRO-Offload)";
    changes_.back().kinds = {ChangeKind::sharding, ChangeKind::optimizer};
    std::ranges::sort(changes_.back().kinds);
    changes_.back().settings.emplace_back("training.data_parallel.sharding=gradients");
  }

  /// Moments of a byte; bitsandbytes' AdamW8bit updates whole tensors or shards alike.
  void add_eight_bits() {
    const bool has_states =
        step_.optimizer == OptimizerKind::adam && step_.formats.optimizer_states != Precision::int8;
    if (has_states)
      add("optimizer states in 8 bit", ChangeKind::optimizer,
          {"training.mixed_precision.optimizer_states=int8"}, 3);
  }

  void add_adapters() {
    if (scenario_.model.family == ModelFamily::vision) return;
    const std::string rank = "training.lora_rank=16";
    const std::string four_bit = "training.base_weights=nf4_double_quant";
    if (step_.lora_rank == 0)
      add("LoRA of rank 16 (trains adapters alone)", ChangeKind::adapters, {rank}, 6);
    if (!has_four_bit_weights(step_)) return;
    if (step_.lora_rank == 0)
      add("QLoRA of rank 16 (weights in 4 bit)", ChangeKind::adapters, {rank, four_bit}, 7);
    else if (!has_four_bits(step_.base_weights))
      add("frozen weights in 4 bit (QLoRA)", ChangeKind::adapters, {four_bit}, 4);
  }

  const Scenario& scenario_;
  const StepOptions& step_;
  std::vector<FitChange> changes_;
};

}  // namespace

bool FitChange::is_plan() const {
  return std::ranges::find(kinds, ChangeKind::offload) != kinds.end();
}

bool FitChange::goes_with(const FitChange& other) const {
  return std::ranges::none_of(kinds, [&](ChangeKind kind) {
    return std::ranges::find(other.kinds, kind) != other.kinds.end();
  });
}

FitChange FitChange::and_also(const FitChange& other) const {
  FitChange both = *this;
  both.name += " + " + other.name;
  both.kinds.insert(both.kinds.end(), other.kinds.begin(), other.kinds.end());
  std::ranges::sort(both.kinds);
  both.settings.insert(both.settings.end(), other.settings.begin(), other.settings.end());
  both.wider *= other.wider;
  both.micro_batch = std::max(micro_batch, other.micro_batch);
  both.cost += other.cost;
  return both;
}

int FitChange::replicas(const Scenario& scenario) const {
  const int data = scenario.step.layout.data;
  return data % wider == 0 ? data / wider : data;
}

bool FitChange::makes_sense(const Scenario& scenario) const {
  const ParallelLayout& layout = scenario.step.layout;
  const int gpus = replicas(scenario) * layout.world_size() / layout.data * wider;
  const bool shards = std::ranges::find(kinds, ChangeKind::sharding) != kinds.end();
  const bool splits = std::ranges::find(kinds, ChangeKind::context) != kinds.end();
  const bool has_replicas = splits || replicas(scenario) * layout.context > 1;
  return gpus <= scenario.cluster.gpu_count() && (!shards || has_replicas);
}

Settings FitChange::all_settings(const Scenario& scenario) const {
  Settings all = settings;
  if (wider == 1 && micro_batch == 0) return all;
  const StepOptions& step = scenario.step;
  const int data = replicas(scenario);
  const std::int64_t size = micro_batch > 0 ? micro_batch : step.micro_batch;
  if (data != step.layout.data) all.push_back(setting("parallelism.data", data));
  if (size != step.micro_batch) all.push_back(setting("training.micro_batch", size));
  all.push_back(setting("training.micro_batches",
                        std::max<std::int64_t>(1, step.global_batch / data / size)));
  return all;
}

std::vector<FitChange> single_changes(const Scenario& scenario) {
  return SingleChanges(scenario).all();
}

std::vector<std::string> changes_not_simulated(const Scenario& scenario, bool plans) {
  if (scenario.step.mode == StepMode::inference) return {};
  std::vector<std::string> lines;
  const bool has_bandwidth = scenario.cluster.node.host_memory_bandwidth > BytesPerSecond(0);
  if (!has_bandwidth)
    lines.emplace_back(
        "an optimizer that runs on the CPU (ZeRO-Offload): cluster.node.host_memory_bandwidth of " +
        scenario.cluster.node.id +
        " is not known; --set it per socket, to '85 GB/s' for two channels of DDR5-5600, "
        "'200 GB/s' for eight of DDR4-3200");
  if (!plans && scenario.memory.planner == MemoryPlanner::off)
    lines.emplace_back(
        "activations or optimizer states in host memory, memory plans: --plans looks at them, for "
        "seconds");
  if (!has_four_bit_weights(scenario.step))
    lines.emplace_back(
        "weights in 4 bit under adapters (QLoRA): of Hugging Face's modules (hf-eager) alone");
  lines.emplace_back("offload to NVMe (ZeRO-Infinity): host memory alone");
  return lines;
}

}  // namespace tessera
