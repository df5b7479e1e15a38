#include "sim/plan/memory/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/collectives/collective.h"
#include "sim/plan/memory/host_links.h"
#include "sim/plan/memory/megatron_planner.h"
#include "sim/plan/memory/planned_program.h"
#include "sim/plan/plan.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/parallel/stage_program.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// Ranks of the tensor-parallel group of rank 0.
std::vector<int> tensor_ranks(const ParallelLayout& layout) {
  std::vector<int> ranks;
  for (int tensor = 0; tensor < layout.tensor; ++tensor)
    ranks.push_back(rank_of({tensor, 0, 0}, layout));
  return ranks;
}

/// Times of operators, each distinct kernel and collective predicted once.
class OperatorTimes {
 public:
  OperatorTimes(const KernelPredictor& predictor, const TimedProgram& timed)
      : predictor_(predictor), timed_(timed), ranks_(tensor_ranks(timed.program.layout)) {}

  Seconds operator()(const GraphOp& op) {
    if (op.kind == GraphOpKind::collective) return collective(op);
    if (op.kind != GraphOpKind::kernel) return {};
    const auto [entry, is_new] = kernels_.try_emplace(op.kernel);
    if (is_new) entry->second = predictor_.predict(op.kernel).duration;
    return entry->second;
  }

 private:
  Seconds collective(const GraphOp& op) {
    const auto [entry, is_new] = collectives_.try_emplace({op.collective, op.bytes.value()});
    if (is_new) {
      const CollectiveSettings& settings = timed_.collectives;
      const CollectiveCall call =
          settings.call_of(op.group, collective_kind_of(op.collective), op.bytes);
      entry->second = collective_cost(timed_.topology, call, ranks_, settings.tuning()).solo_time;
    }
    return entry->second;
  }

  const KernelPredictor& predictor_;
  const TimedProgram& timed_;
  std::vector<int> ranks_;
  std::map<Kernel, Seconds> kernels_;
  std::map<std::pair<OpKind, std::int64_t>, Seconds> collectives_;
};

int in_flight(const RankProgram& stage) {
  std::set<std::int32_t> waiting;
  std::size_t most = 1;
  std::int32_t backward = -1;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels) continue;
    const bool is_backward = op.phase == Phase::backward;
    if (backward >= 0 && (!is_backward || op.micro_batch != backward)) waiting.erase(backward);
    backward = is_backward ? op.micro_batch : -1;
    if (op.micro_batch >= 0 && !is_backward) waiting.insert(op.micro_batch);
    most = std::max(most, waiting.size());
  }
  return static_cast<int>(most);
}

class StagePlanner {
 public:
  StagePlanner(const MemorySettings& settings, const remat::HostLink& link, Bytes budget,
               Bytes host_bytes, const OpTime& time)
      : settings_(settings), link_(link), budget_(budget), host_bytes_(host_bytes), time_(time) {}

  void plan(StageMemoryPlan& result) {
    plan_ = &result;
    if (result.in_flight == 1) {
      accept(attempt(Bytes(0), settings_.thorough));
      return;
    }
    const Bytes room = budget_ - result.static_bytes;
    std::optional<Attempt> best;
    Bytes best_share;
    for (const Bytes share : shares(room / result.in_flight)) {
      Attempt tried = attempt(share, false);
      if (best && !is_better(tried, *best)) continue;
      best = std::move(tried);
      best_share = share;
    }
    if (settings_.thorough && best->result.feasible) {
      Attempt again = attempt(best_share, true);
      if (is_better(again, *best)) best = std::move(again);
    }
    accept(std::move(*best));
  }

 private:
  struct Attempt {
    StageGraph graph;
    remat::PlanResult result;
  };

  static bool is_better(const Attempt& a, const Attempt& b) {
    if (a.result.feasible != b.result.feasible) return a.result.feasible;
    if (!a.result.feasible) return a.result.lower_bound.bytes < b.result.lower_bound.bytes;
    return a.result.cost.time < b.result.cost.time;
  }

  /// What a waiting micro-batch may hold: up to an equal share of the room.
  static std::vector<Bytes> shares(Bytes most) {
    constexpr int kSteps = 10;
    std::vector<Bytes> list;
    for (int i = 0; i <= kSteps; ++i) list.push_back(Bytes(most.value() * i / kSteps));
    return list;
  }

  /// With `share` for each of the micro-batches that wait.
  Attempt attempt(Bytes share, bool thorough) {
    const int others = plan_->in_flight - 1;
    StageRoom room{.static_bytes = plan_->static_bytes +
                                   Bytes(share.value() * static_cast<std::int64_t>(others)),
                   .while_waiting = {}};
    if (others > 0) room.while_waiting = std::max(Bytes(0), budget_ - room.static_bytes - share);
    Attempt made{
        .graph = stage_graph(plan_->ops, "stage " + std::to_string(plan_->stage), time_, room),
        .result = {}};
    remat::PlanRequest request{.budget = budget_.value()};
    if (settings_.swap) request.link = link_;
    request.host_bytes = host_bytes_.value() / plan_->in_flight;
    request.effort = thorough ? remat::Effort::thorough : remat::Effort::fast;
    auto planner = make_megatron_planner(settings_.planner, plan_->ops, made.graph);
    if (!planner) planner = remat::make_planner(settings_.planner);
    made.result = remat::make_plan(*planner, made.graph.graph, request);
    return made;
  }

  void accept(Attempt made) {
    const remat::Graph& graph = made.graph.graph;
    remat::PlanResult& result = made.result;
    plan_->feasible = result.feasible;
    plan_->lower_bound = Bytes(result.lower_bound.bytes);
    plan_->base_time = seconds(graph.base_time());
    plan_->planned_time = seconds(result.cost.time);
    plan_->recompute = seconds(result.cost.recompute);
    plan_->stall = seconds(result.cost.stall);
    plan_->copied = Bytes(result.cost.copied);
    plan_->host_bytes = Bytes(result.cost.host_peak * plan_->in_flight);
    plan_->note = result.note;
    if (!result.feasible) return refuse(graph, result);
    plan_->certified_gap = result.certified_gap;
    plan_->decisions = remat::count_decisions(graph, result.schedule);
    plan_->schedule = std::move(result.schedule);
    plan_->graph = std::move(made.graph);
  }

  void refuse(const remat::Graph& graph, const remat::PlanResult& result) {
    const bool proven = budget_.value() < result.lower_bound.bytes;
    const std::int64_t needed = proven ? result.lower_bound.bytes : result.cost.peak;
    plan_->missing = Bytes(needed - budget_.value());
    const remat::OpId op = result.lower_bound.op;
    const std::string name = op < 0 ? "its kept tensors" : std::string(graph.op_name(op));
    const std::string what = proven ? name + " needs" : "the lowest peak found is";
    plan_->infeasible = "stage " + std::to_string(plan_->stage) + ": " + what + " " +
                        to_text(Bytes(needed)) + ", " + to_text(plan_->missing) +
                        " more than the budget";
  }

  static Seconds seconds(remat::Nanoseconds time) {
    return Seconds(static_cast<double>(time) * 1e-9);
  }

  const MemorySettings& settings_;
  remat::HostLink link_;
  Bytes budget_, host_bytes_;
  const OpTime& time_;
  StageMemoryPlan* plan_ = nullptr;
};

Bytes host_bytes_of(const MemorySettings& settings, const NodeSpec& node) {
  if (settings.host_memory.value() > 0) return settings.host_memory;
  if (node.host_memory.value() > 0) return Bytes(node.host_memory.value() / node.gpu_count);
  return Bytes(std::numeric_limits<std::int64_t>::max() / 4);
}

ProgramBlock block_of(const StageMemoryPlan& plan) {
  ProgramBlock block;
  block.name = "stage " + std::to_string(plan.stage);
  block.spans_layers = true;
  for (const StageTensor& tensor : plan.ops.tensors)
    block.storages.push_back({tensor.name, tensor.role, StorageScope::local, tensor.bytes});
  return block;
}

void rewrite(const StageMemoryPlan& plan, bool stores_first, Program& program) {
  const auto block = static_cast<std::int32_t>(program.blocks.size());
  std::vector<std::string> names;
  for (const ProgramBlock& known : program.blocks) names.push_back(known.name);
  program.blocks.push_back(block_of(plan));
  const MemoryPasses passes =
      write_passes(plan.ops, plan.graph, plan.schedule, block, names, program.segments);
  const SegmentId empty(static_cast<std::int32_t>(program.segments.size()));
  program.segments.emplace_back();
  program.segments.back().name = "memory.wait";
  put_planned_passes(passes, stores_first, empty,
                     program.stages[static_cast<std::size_t>(plan.stage)]);
}

/// A pipeline of m micro-batches takes m - 1 passes of its slowest stage and one of each.
Seconds added_time(const std::vector<StageMemoryPlan>& stages, int micro_batches) {
  Seconds slowest_before, slowest_after, each;
  for (const StageMemoryPlan& plan : stages) {
    slowest_before = std::max(slowest_before, plan.base_time);
    slowest_after = std::max(slowest_after, plan.planned_time);
    each += plan.planned_time - plan.base_time;
  }
  return (slowest_after - slowest_before) * static_cast<double>(micro_batches - 1) + each;
}

/// Every stage as it is, before plans.
std::vector<StageMemoryPlan> stages_of(const ModelGraph& graph, const Scenario& scenario,
                                       const TimedProgram& timed, Bytes budget) {
  const std::vector<int> layers = layers_of_parts(graph, scenario.step);
  const AllocatorSetting& allocator = timed.library_memory.allocator;
  std::vector<StageMemoryPlan> stages;
  for (const RankProgram& rank : timed.program.stages) {
    StageMemoryPlan plan;
    plan.stage = rank.stage;
    plan.in_flight = in_flight(rank);
    plan.static_bytes = rank.static_memory + allocator.workspaces;
    plan.base_peak = plan.planned_peak = profile_memory(timed.program, plan.stage, allocator).peak;
    plan.needed = plan.base_peak > budget;
    plan.ops = stage_ops(graph, blocks_of_part(graph, plan.stage, layers));
    stages.push_back(std::move(plan));
  }
  return stages;
}

void refuse_unknown(const Scenario& scenario) {
  std::vector<Problem> problems;
  const std::vector<std::string> names = step_planner_names();
  if (std::ranges::find(names, scenario.memory.planner) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    problems.push_back(
        {"memory.planner", "'" + scenario.memory.planner + "' is unknown", "use one of " + known});
  }
  if (scenario.step.recompute != Recompute::none)
    problems.push_back({"memory.planner", "plans what is run again, as training.recompute does",
                        "leave out training.recompute"});
  if (scenario.step.mode == StepMode::inference)
    problems.push_back({"memory.planner", "plans training steps", "use mode: training"});
  const bool one_way = scenario.step.schedule == PipelineSchedule::gpipe ||
                       scenario.step.schedule == PipelineSchedule::one_f_one_b;
  if (!one_way || scenario.step.layout.virtual_stages > 1)
    problems.push_back({"memory.planner",
                        "plans one model chunk per stage with whole backward passes",
                        "use schedule gpipe or one_f_one_b, and virtual_stages: 1"});
  if (gathers_units(scenario.step))
    problems.push_back({"memory.planner", "does not know gathered units of parameters",
                        "shard optimizer states or gradients alone"});
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

bool PlannedStep::feasible() const {
  return std::ranges::all_of(stages, [](const StageMemoryPlan& plan) { return plan.feasible; });
}

std::vector<std::string> step_planner_names() {
  std::vector<std::string> names = remat::planner_names();
  std::erase(names, "exact");
  names.emplace_back("megatron_block");
  names.emplace_back("megatron_uniform");
  return names;
}

void limit_memory(const Scenario& scenario, const PlannedStep* plan, TimedProgram& timed) {
  const MemorySettings& settings = scenario.memory;
  Bytes limit = settings.limit;
  Bytes planned_copies;
  if (plan != nullptr && plan->feasible()) {
    limit = limit > Bytes(0) ? std::min(limit, plan->budget) : plan->budget;
    for (const StageMemoryPlan& stage : plan->stages)
      if (stage.needed) planned_copies = std::max(planned_copies, stage.host_bytes);
  }
  if (limit <= Bytes(0)) return;
  const Bytes host = host_bytes_of(settings, scenario.cluster.node);
  timed.memory_limit = {.bytes = limit,
                        .swap = settings.swap,
                        .host_bytes = std::max(Bytes(0), host - planned_copies)};
  timed.memory_capacity = std::min(timed.memory_capacity, limit);
}

PlannedStep plan_memory_of(const Scenario& scenario, const KernelPredictor& predictor,
                           TimedProgram& timed) {
  refuse_unknown(scenario);
  OperatorTimes times(predictor, timed);
  const OpTime time = [&](const GraphOp& op) { return times(op); };
  const MemorySettings& settings = scenario.memory;
  PlannedStep planned;
  planned.budget = settings.budget.value() > 0 ? settings.budget : timed.memory_capacity;
  const ModelGraph graph = build_model_graph(scenario.model, scenario.step);
  planned.stages = stages_of(graph, scenario, timed, planned.budget);
  std::vector<bool> copying;
  for (const StageMemoryPlan& plan : planned.stages) copying.push_back(plan.needed);
  const std::vector<remat::HostLink> links = host_links(timed, copying);
  planned.link = *std::ranges::min_element(links, {}, &remat::HostLink::bytes_per_ns);
  const bool stores_first =
      scenario.step.framework.gradients_set_to_none && scenario.step.mode == StepMode::training;
  for (StageMemoryPlan& plan : planned.stages) {
    if (!plan.needed) {
      const StageGraph whole = stage_graph(plan.ops, "", time, {});
      plan.base_time = plan.planned_time =
          Seconds(static_cast<double>(whole.graph.base_time()) * 1e-9);
      continue;
    }
    StagePlanner(settings, links[static_cast<std::size_t>(plan.stage)], planned.budget,
                 host_bytes_of(settings, scenario.cluster.node), time)
        .plan(plan);
    if (!plan.feasible) continue;
    rewrite(plan, stores_first, timed.program);
    plan.planned_peak =
        profile_memory(timed.program, plan.stage, timed.library_memory.allocator).peak;
  }
  count_flops(timed.program);
  timed.memory_capacity = std::min(timed.memory_capacity, planned.budget);
  TimedSegments again = time_segments(timed.program, predictor, host_costs(scenario.step));
  timed.segments = std::move(again.segments);
  timed.kernels = std::move(again.kernels);
  planned.added_time = added_time(planned.stages, static_cast<int>(scenario.step.micro_batches()));
  return planned;
}

}  // namespace tessera
