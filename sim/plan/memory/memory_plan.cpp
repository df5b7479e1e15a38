#include "sim/plan/memory/memory_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/plan/memory/host_links.h"
#include "sim/plan/memory/megatron_planner.h"
#include "sim/plan/memory/operator_costs.h"
#include "sim/plan/memory/optimizer_offload.h"
#include "sim/plan/memory/packed_ops.h"
#include "sim/plan/memory/plan_progress.h"
#include "sim/plan/memory/stage_means.h"
#include "sim/plan/memory/stage_transfers.h"
#include "sim/plan/time_segments.h"
#include "sim/scenario/names.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {
namespace {

Bytes host_bytes_of(const MemorySettings& settings, const NodeSpec& node) {
  if (settings.host_memory.value() > 0) return settings.host_memory;
  if (node.host_memory.value() > 0) return Bytes(node.host_memory.value() / node.gpu_count);
  return Bytes(std::numeric_limits<std::int64_t>::max() / 4);
}

/// Of the passes in the order of the schedule: without plans, and with them.
struct PassesTime {
  Seconds base, planned;
};
PassesTime passes_time(const StepOptions& step, const std::vector<RankProgram>& stages,
                       const std::vector<StageMemoryPlan>& plans) {
  const auto chunks = static_cast<std::size_t>(VirtualPipeline(step).chunks());
  std::vector<std::vector<ChunkTimes>> before, after;
  for (const StageMemoryPlan& plan : plans) {
    before.emplace_back(chunks);
    after.emplace_back(chunks);
    for (const ChunkMemoryPlan& chunk : plan.chunks) {
      const auto at = static_cast<std::size_t>(chunk.chunk);
      before.back()[at].of(chunk.splits) = {chunk.base_times};
      after.back()[at].of(chunk.splits) = {chunk.planned_times, chunk.copies_out};
    }
  }
  return {pipeline_time(step, stages, before), pipeline_time(step, stages, after)};
}

/// Every stage as it is, before plans.
std::vector<StageMemoryPlan> stages_of(const ModelGraph& graph, const Scenario& scenario,
                                       const TimedProgram& timed, Bytes budget) {
  const AllocatorSetting& allocator = timed.library_memory.allocator;
  std::vector<StageMemoryPlan> stages;
  for (const RankProgram& rank : timed.program.stages) {
    StageMemoryPlan plan;
    plan.stage = rank.stage;
    plan.in_flight = in_flight(rank);
    plan.static_bytes = rank.static_memory + allocator.workspaces;
    const MemoryProfile profile = profile_memory(timed.program, plan.stage, allocator);
    plan.base_peak = plan.planned_peak = profile.peak;
    plan.planned_reserved = profile.reserved;
    plan.needed =
        missing_bytes(profile, allocator, budget) > Bytes(0) || scenario.memory.layers > 0;
    plan.chunks = unplanned_chunks(graph, scenario.step, rank);
    for (ChunkMemoryPlan& chunk : plan.chunks)
      chunk.ops.transfers = transfers_beside(rank, chunk, timed);
    stages.push_back(std::move(plan));
  }
  return stages;
}

/// Optimizer states of stages in host memory.
class OptimizerOffload {
 public:
  OptimizerOffload(const Scenario& scenario, Bytes budget) : scenario_(scenario), budget_(budget) {}

  bool wanted() const { return offloads_optimizer(scenario_.memory.planner); }
  void run(StageMemoryPlan& plan, const OpTime& time, const remat::HostLink& link, Bytes host_bytes,
           TimedProgram& timed) {
    leave_alone(plan, time);
    const AllocatorSetting& allocator = timed.library_memory.allocator;
    Seconds update;
    if (on_cpu()) {
      updates_.push_back(update_on_cpu(plan, budget_, host_bytes,
                                       host_bandwidth_of_gpu(scenario_.cluster.node), allocator,
                                       scenario_.step, timed.program));
      update = updates_.back().time;
    } else {
      offload_optimizer(plan, budget_, host_bytes, allocator, timed.program);
    }
    slowest_ = std::max(slowest_, update + offload_time(plan, link));
  }
  /// What no predictor knows.
  void set_times(std::vector<TimedSegment>& segments) const {
    for (const CpuUpdate& update : updates_)
      segments[static_cast<std::size_t>(update.segment.index())].duration = update.time;
  }
  Seconds slowest() const { return slowest_; }

 private:
  bool on_cpu() const { return scenario_.memory.planner == MemoryPlanner::cpu_optimizer; }

  const Scenario& scenario_;
  Bytes budget_;
  Seconds slowest_;
  std::vector<CpuUpdate> updates_;
};

void set_times(const std::vector<DriveTransfer>& drives, std::vector<TimedSegment>& segments) {
  for (const DriveTransfer& drive : drives)
    segments[static_cast<std::size_t>(drive.segment.index())].duration = drive.time;
}

/// The allocator gets less than the plan was made for, and who chooses then tells kernels apart.
bool is_short_of(Bytes budget, const MemorySettings& settings) {
  return settings.limit > Bytes(0) && settings.limit < budget &&
         settings.pressure != PressurePolicy::rule;
}

/// With the programs as plans have made them.
TimedProgram timed_again(TimedProgram timed, Bytes budget, const Scenario& scenario,
                         const KernelPredictor& predictor) {
  timed.program = with_counted_flops(std::move(timed.program));
  timed = kept_within(budget, std::move(timed));
  TimedSegments again = time_segments(timed.program, predictor, host_costs(scenario));
  timed.segments = std::move(again.segments);
  timed.kernels = std::move(again.kernels);
  return timed;
}

void set_times(const StepOptions& step, const std::vector<RankProgram>& stages, Seconds behind,
               PlannedStep& planned) {
  const PassesTime passes = passes_time(step, stages, planned.stages);
  const bool alone = planned.stages.size() == 1;  // nothing else hides what it waits for
  const Seconds added = alone ? planned.stages.front().added_time : Seconds(0);
  planned.passes_time = std::max(passes.planned, passes.base + added) + behind;
  planned.added_time = planned.passes_time - passes.base;
}

/// The schedules of `known` for the operators of `plan`, whose sizes and times are others.
void carry_over(const StageMemoryPlan& known, const OpTime& time, const remat::HostLink& link,
                StageMemoryPlan& plan) {
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    ChunkMemoryPlan& chunk = plan.chunks[c];
    const ChunkMemoryPlan& from = known.chunks.at(c);
    if (from.ops.added) chunk.ops = with_packed_tensors(chunk.ops, known.packing);
    chunk.graph = stage_graph(chunk.ops, "stage " + std::to_string(plan.stage), time, {});
    const remat::Graph& graph = chunk.graph.graph;
    const remat::Graph& own = from.graph.graph;
    const bool is_planned = !from.schedule.empty();  // else all runs once, in order
    if (is_planned && (own.ops() != graph.ops() || own.tensors() != graph.tensors()))
      throw InputError({"memory.planned_sequence_length",
                        "and memory.planned_expert_imbalance: the step that the plan was made for "
                        "has other operators than this one",
                        "plan this step itself: leave both out"});
    chunk.schedule =
        is_planned ? from.schedule : remat::make_planner("none")->plan(graph, {}).schedule;
    chunk.copies_out = copies_out(chunk.graph, chunk.schedule, link);
    const remat::ReplayResult cost = remat::replay(graph, chunk.schedule, link);
    chunk.planned_times =
        planned_times(chunk.graph, chunk.schedule,
                      {.awaited = cost.awaited, .forward_awaited = cost.forward_awaited});
  }
}

/// The stages of a step and what they may take, ahead of any plan.
PlannedStep unplanned(const ModelGraph& graph, const Scenario& scenario,
                      const TimedProgram& timed) {
  PlannedStep planned;
  planned.libraries = timed.library_memory;
  const Bytes given = scenario.memory.budget, room = std::max(1_B, room_for_tensors(timed));
  planned.budget = given > Bytes(0) ? std::min(given, room) : room;
  planned.stages = stages_of(graph, scenario, timed, planned.budget);
  return planned;
}

/// To host memory, by stage, while those that need a plan copy.
std::vector<remat::HostLink> links_of(const std::vector<StageMemoryPlan>& stages,
                                      const TimedProgram& timed) {
  std::vector<bool> copying;
  for (const StageMemoryPlan& plan : stages) copying.push_back(plan.needed);
  return host_links(timed, copying);
}

}  // namespace

bool PlannedStep::feasible() const {
  return std::ranges::all_of(stages, [](const StageMemoryPlan& plan) { return plan.feasible; });
}

DeviceMemory PlannedStep::device() const {
  DeviceMemory memory;
  memory.context = libraries.context;
  memory.communicators = libraries.communicators;
  for (const StageMemoryPlan& plan : stages) {
    memory.allocated = std::max(memory.allocated, plan.planned_peak);
    memory.reserved = std::max(memory.reserved, plan.planned_reserved);
  }
  return memory;
}

TimedProgram with_memory_limit(const Scenario& scenario, const PlannedStep* plan,
                               TimedProgram timed) {
  const MemorySettings& settings = scenario.memory;
  Bytes limit = settings.limit;
  Bytes planned_copies;
  if (plan != nullptr && plan->feasible()) {
    limit = limit > Bytes(0) ? std::min(limit, plan->budget) : plan->budget;
    for (const StageMemoryPlan& stage : plan->stages)
      if (stage.needed) planned_copies = std::max(planned_copies, stage.host_bytes);
  }
  if (limit <= Bytes(0)) return timed;
  const Bytes host = host_bytes_of(settings, scenario.cluster.node);
  timed.memory_limit = {.bytes = limit,
                        .swap = settings.swap,
                        .recompute = settings.recompute,
                        .host_bytes = std::max(Bytes(0), host - planned_copies),
                        .policy = settings.pressure};
  if (settings.pressure != PressurePolicy::rule)
    timed.memory_limit.links =
        host_links(timed, std::vector<bool>(timed.program.stages.size(), true));
  return kept_within(limit, std::move(timed));
}

PlannedProgram with_memory_plan(const Scenario& scenario, const KernelPredictor& predictor,
                                TimedProgram timed) {
  return with_memory_plan(scenario, predictor, std::move(timed), {});
}

PlannedProgram with_memory_plan(const Scenario& scenario, const KernelPredictor& predictor,
                                TimedProgram timed, const PlanManner& manner) {
  OperatorCosts costs(predictor, timed);
  const OpTime time = [&](const GraphOp& op) { return costs.of(op); };
  const MemorySettings& settings = scenario.memory;
  const ModelGraph graph = build_model_graph(scenario.model, scenario.step);
  PlannedStep planned = unplanned(graph, scenario, timed);
  const std::vector<remat::HostLink> links = links_of(planned.stages, timed);
  planned.link = *std::ranges::min_element(links, {}, &remat::HostLink::bytes_per_ns);
  const PassStyle style{gradient_store(scenario.step), is_short_of(planned.budget, settings)};
  OptimizerOffload offload(scenario, planned.budget);
  KnownPlans known;
  std::vector<DriveTransfer> drives;
  Seconds slowest_states;
  for (std::size_t s = 0; s < planned.stages.size(); ++s) {
    if (manner.progress) manner.progress(s, planned.stages.size());
    StageMemoryPlan& plan = planned.stages[s];
    if (!plan.needed) {
      leave_alone(plan, time);
      continue;
    }
    const remat::HostLink& link = links[static_cast<std::size_t>(plan.stage)];
    const Bytes host_bytes = host_bytes_of(settings, scenario.cluster.node);
    if (offload.wanted()) {
      offload.run(plan, time, link, host_bytes, timed);
      continue;
    }
    StagePlanner planner(settings, link, planned.budget, host_bytes, time, known, manner.drafts,
                         manner.certifies);
    StageMeans means(scenario, link, host_bytes, time, style);
    means.plan(plan, planner, timed);
    slowest_states = std::max(slowest_states, means.offload());
    drives.insert(drives.end(), means.drives().begin(), means.drives().end());
  }
  timed = timed_again(std::move(timed), planned.budget, scenario, predictor);
  offload.set_times(timed.segments);
  set_times(drives, timed.segments);
  set_times(scenario.step, timed.program.stages, offload.slowest() + slowest_states, planned);
  return {std::move(timed), std::move(planned)};
}

PlannedProgram with_foreseen_plan(const Scenario& scenario, const PlannedStep& foreseen,
                                  const KernelPredictor& predictor, TimedProgram timed) {
  OperatorCosts costs(predictor, timed);
  const OpTime time = [&](const GraphOp& op) { return costs.of(op); };
  PlannedStep planned;
  planned.libraries = timed.library_memory;
  planned.budget = foreseen.budget;
  planned.link = foreseen.link;
  const ModelGraph graph = build_model_graph(scenario.model, scenario.step);
  planned.stages = stages_of(graph, scenario, timed, planned.budget);
  const bool apart = scenario.memory.pressure != PressurePolicy::rule;
  const PassStyle style{gradient_store(scenario.step), apart};
  for (std::size_t s = 0; s < planned.stages.size(); ++s) {
    StageMemoryPlan& plan = planned.stages[s];
    leave_alone(plan, time);
    plan.needed = true;
    carry_over(foreseen.stages[s], time, planned.link, plan);
    write_stage(plan, style, timed.program);
    measure_stage(plan, planned.budget, timed);
  }
  timed = timed_again(std::move(timed), planned.budget, scenario, predictor);
  set_times(scenario.step, timed.program.stages, Seconds(0), planned);
  return {std::move(timed), std::move(planned)};
}

}  // namespace tessera
