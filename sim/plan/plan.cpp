#include "sim/plan/plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "hw/power.h"
#include "hw/units/deadline.h"
#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/weights/weights.h"
#include "sim/collectives/measured_fabric.h"
#include "sim/plan/memory/optimizer_offload.h"
#include "sim/plan/memory/plan_progress.h"
#include "sim/plan/time_segments.h"
#include "sim/scenario/hardware_queues.h"
#include "sim/scenario/names.h"
#include "sim/scenario/rules/check_scenario.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/program/process_groups.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

/// Segments on every other GPU that the perturbation names, and who runs what.
RankPaces rank_paces(const Scenario& scenario, const Program& program,
                     const PredictorWeights& weights) {
  const Perturbation& perturbation = scenario.perturbation;
  RankPaces paces;
  paces.kernel_jitter = perturbation.kernel_jitter;
  paces.seed = static_cast<std::uint64_t>(perturbation.seed);
  if (perturbation.gpus.empty()) return paces;
  paces.ranks.resize(static_cast<std::size_t>(program.layout.world_size()));
  std::map<std::string, int> table_of_gpu;
  for (const GpuPerturbation& gpus : perturbation.gpus) {
    RankPace pace{.table = -1, .slowdown = gpus.slowdown};
    if (!gpus.gpu.id.empty()) {
      const auto next = static_cast<int>(paces.tables.size());
      const auto [entry, is_new] = table_of_gpu.try_emplace(gpus.gpu.id, next);
      if (is_new) {
        const auto predictor =
            make_predictor(scenario.predictor_form, at_power_limit(gpus.gpu), weights);
        paces.tables.push_back(time_segments(program, *predictor, host_costs(scenario)).segments);
        paces.gpus.push_back(gpus.gpu);
      }
      pace.table = entry->second;
    }
    for (const int rank : ranks_of(gpus, program.layout)) {
      paces.ranks[static_cast<std::size_t>(rank)] = pace;
    }
  }
  return paces;
}

/// The cluster with the slower NICs that the perturbation names as faults of these links.
ClusterSpec cluster_of(const Scenario& scenario, const Program& program) {
  ClusterSpec cluster = scenario.cluster;
  std::map<int, double> share_of_node;
  for (const GpuPerturbation& gpus : scenario.perturbation.gpus) {
    if (gpus.nic_bandwidth_share >= 1) continue;
    for (const int rank : ranks_of(gpus, program.layout))
      share_of_node[program.gpu_of(rank) / cluster.node.gpu_count] = gpus.nic_bandwidth_share;
  }
  for (const auto& [node, share] : share_of_node)
    cluster.faults.push_back(
        {.link = "node" + std::to_string(node) + "/nic*->fabric", .bandwidth_share = share});
  return cluster;
}

/// Of the smallest GPU in use.
Bytes memory_capacity(const Scenario& scenario) {
  Bytes capacity = scenario.cluster.node.gpu.memory;
  for (const GpuPerturbation& gpus : scenario.perturbation.gpus) {
    if (!gpus.gpu.id.empty()) capacity = std::min(capacity, gpus.gpu.memory);
  }
  return capacity;
}

std::unique_ptr<KernelPredictor> predictor_of(const Scenario& scenario,
                                              const PredictorWeights& weights) {
  const GpuSpec gpu = at_power_limit(scenario.cluster.node.gpu);
  return make_predictor(scenario.predictor_form, gpu,
                        with_overlays(weights, scenario.overlays, gpu));
}

LibraryMemory library_memory_of(const Scenario& scenario) {
  LibraryMemory memory = library_memory(scenario.step, scenario.cluster.node);
  memory.allocator.capacity = memory_capacity(scenario) - memory.context - memory.communicators;
  return memory;
}

/// Of `per_rank`, for a rank on the node of the group's first. Chosen by steps of one model
/// (nanotron, 1.34B, tensor-parallel groups of 4 and 8); decision 48 has the others.
constexpr double kShareOnOneNode = 0.7;

/// Of a group: its ranks, those on the node of its first, and its nodes.
struct GroupShape {
  int ranks = 0;
  int near = 0;
  std::set<int> nodes;
};

/// Of rank 0's groups, by GroupKind.
using GroupShapes = std::array<GroupShape, kGroupKindCount>;

GroupShapes shapes_of_groups(const Program& program, int gpus_of_node) {
  GroupShapes shapes{};
  const ParallelLayout& layout = program.layout;
  const int first_node = program.gpu_of(0) / gpus_of_node;
  for (int kind = 0; kind < kGroupKindCount; ++kind) {
    const auto group = static_cast<GroupKind>(kind);
    GroupShape& shape = shapes[static_cast<std::size_t>(kind)];
    const GroupCoordinates first = group_key(0, group, layout);
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      if (!is_group_member(rank, group, layout) || group_key(rank, group, layout) != first)
        continue;
      const int node = program.gpu_of(rank) / gpus_of_node;
      shape.ranks += 1;
      shape.near += node == first_node ? 1 : 0;
      shape.nodes.insert(node);
    }
  }
  return shapes;
}

std::array<Seconds, kGroupKindCount> host_time_of_groups(Seconds per_rank,
                                                         const GroupShapes& shapes) {
  std::array<Seconds, kGroupKindCount> times{};
  for (std::size_t kind = 0; kind < times.size(); ++kind)
    times[kind] =
        (kShareOnOneNode * shapes[kind].near + (shapes[kind].ranks - shapes[kind].near)) * per_rank;
  return times;
}

/// What a measured fabric does to a program: the time of a slow host for the collectives of each
/// kind of group, and theirs. Groups that were measured keep what was measured.
void add_measured_fabric(const MeasuredFabric& fabric, int gpus_of_node, TimedProgram& timed) {
  if (fabric.per_rank.value() <= 0 && fabric.collectives.empty()) return;
  const GroupShapes shapes = shapes_of_groups(timed.program, gpus_of_node);
  if (fabric.per_rank.value() > 0)
    timed.group_host_time = host_time_of_groups(fabric.per_rank, shapes);
  for (const GroupShape& shape : shapes)
    std::ranges::copy(slower_collectives(fabric, shape.ranks, static_cast<int>(shape.nodes.size())),
                      std::back_inserter(timed.collectives.groups));
}

TimedProgram time_step(const Scenario& scenario, const KernelPredictor& predictor) {
  const HostCosts host = host_costs(scenario);
  Program program = build_program(scenario.model, scenario.step);
  auto timed = time_segments(program, predictor, host);
  const MeasuredFabric fabric =
      measured_fabric(cluster_of(scenario, program), scenario.collectives.tuning());
  TimedProgram answer{
      .program = std::move(program),
      .segments = std::move(timed.segments),
      .topology = Topology(fabric.cluster),
      .communication_host_time = host.per_communication,
      .memory_capacity = memory_capacity(scenario),
      .library_memory = library_memory_of(scenario),
      .kernels = std::move(timed.kernels),
      .collectives = scenario.collectives,
      .simulation = scenario.simulation,
      .single_hardware_queue = single_hardware_queue(scenario.step, scenario.cluster.node.gpu),
      .records_streams = scenario.step.framework.records_streams,
      .message_host_time = host.per_message};
  add_measured_fabric(fabric, scenario.cluster.node.gpu_count, answer);
  return answer;
}

/// A plan of what runs again takes the place of training.recompute. Planners know values that are
/// written once: gradients that meet make a new one for them, which holds more for a while.
Scenario with_plan_alone(Scenario scenario) {
  if (!scenario.step.split.micro_batches_per_replica.empty())
    throw InputError({"parallelism.micro_batches_per_replica", "is not planned for",
                      "give every replica equally many micro-batches"});
  if (scenario.memory.planner == MemoryPlanner::off) return scenario;
  scenario.step.recompute = Recompute::none;
  if (!offloads_optimizer(scenario.memory.planner))
    scenario.step.framework.gradients_join_in_place = false;
  return scenario;
}

Deadline planning_deadline(const Scenario& scenario) {
  return Deadline(scenario.simulation.time_limit, "planning", "simulation.time_limit");
}

/// Some GPU will run short, and who chooses what leaves tells kernels apart.
bool needs_kernels_apart(const TimedProgram& timed) {
  const MemoryLimit& limit = timed.memory_limit;
  if (limit.bytes <= Bytes(0) || limit.policy == PressurePolicy::rule) return false;
  return std::ranges::any_of(timed.program.stages, [&](const RankProgram& stage) {
    return profile_memory(timed.program, stage.stage, timed.library_memory.allocator).peak >
           limit.bytes;
  });
}

/// Without a plan. Where memory runs short under a policy that tells kernels apart, each is a
/// segment.
TimedProgram unplanned_step(const Scenario& scenario, const KernelPredictor& predictor) {
  TimedProgram timed = with_memory_limit(scenario, nullptr, time_step(scenario, predictor));
  if (!needs_kernels_apart(timed)) return timed;
  if (scenario.step.framework.cuda_graphs != CudaGraphs::off)
    throw InputError({"memory.pressure", "cannot take kernels of a CUDA graph apart",
                      "use memory.pressure: rule, or framework.cuda_graphs: off"});
  Scenario apart = scenario;
  apart.step.segment_per_call = true;
  return with_memory_limit(apart, nullptr, time_step(apart, predictor));
}

/// The step that the plan is made for.
Scenario foreseen_step(Scenario scenario) {
  MemorySettings& memory = scenario.memory;
  if (memory.planned_sequence_length > 0)
    scenario.step.sequence_length = memory.planned_sequence_length;
  if (memory.planned_expert_imbalance > 0)
    scenario.step.expert_imbalance = memory.planned_expert_imbalance;
  memory.planned_sequence_length = 0;
  memory.planned_expert_imbalance = 0;
  return scenario;
}

PlannedProgram foreseen_plan(const Scenario& scenario, const KernelPredictor& predictor,
                             const PlanManner& manner) {
  const Scenario known = foreseen_step(scenario);
  const PlannedProgram plan =
      with_memory_plan(known, predictor, time_step(known, predictor), manner);
  return with_foreseen_plan(scenario, plan.memory, predictor, time_step(scenario, predictor));
}

/// `whole`, or a plan of smaller micro-batches where that is faster.
PlannedProgram split_where_faster(const Scenario& scenario, const KernelPredictor& predictor,
                                  PlannedProgram whole, const PlanManner& manner) {
  PlannedProgram best = std::move(whole);
  const Seconds base = best.memory.passes_time - best.memory.added_time;
  for (int parts = 2; parts <= scenario.memory.split_batch; ++parts) {
    if (scenario.step.micro_batch % parts != 0) continue;
    Scenario split = scenario;
    split.step.micro_batch /= parts;
    PlannedProgram next = with_memory_plan(split, predictor, time_step(split, predictor), manner);
    next.memory.split = parts;
    next.memory.added_time = next.memory.passes_time - base;
    const bool fits = next.memory.feasible(), fitted = best.memory.feasible();
    const bool faster = next.memory.passes_time < best.memory.passes_time;
    if (fits && (!fitted || faster)) best = std::move(next);
  }
  return best;
}

PlannedProgram plan_of(const Scenario& scenario, const KernelPredictor& predictor,
                       const PlanManner& manner) {
  const MemorySettings& memory = scenario.memory;
  if (memory.planned_sequence_length > 0 || memory.planned_expert_imbalance > 0)
    return foreseen_plan(scenario, predictor, manner);
  TimedProgram timed = time_step(scenario, predictor);
  // Batch norms average over the samples that they see.
  const bool may_split = memory.split_batch > 1 && scenario.model.family != ModelFamily::vision;
  PlannedProgram whole = with_memory_plan(scenario, predictor, std::move(timed), manner);
  return may_split ? split_where_faster(scenario, predictor, std::move(whole), manner) : whole;
}

TimedProgram planned_step(const Scenario& given, const KernelPredictor& predictor) {
  const Scenario scenario = with_plan_alone(given);
  PlannedProgram plan = plan_of(scenario, predictor, {});
  return with_memory_limit(scenario, &plan.memory, std::move(plan.timed));
}

}  // namespace

TimedProgram plan_step(const Scenario& scenario, const PredictorWeights& weights) {
  require_sound(scenario);
  const Deadline deadline = planning_deadline(scenario);
  const auto predictor = predictor_of(scenario, weights);
  TimedProgram timed = scenario.memory.planner == MemoryPlanner::off
                           ? unplanned_step(scenario, *predictor)
                           : planned_step(scenario, *predictor);
  timed.paces = rank_paces(scenario, timed.program, weights);
  deadline.check();
  timed.simulation.time_limit = deadline.left();
  return timed;
}

PlannedSteps plan_step_memory(const Scenario& scenario, const PredictorWeights& weights) {
  return plan_step_memory(scenario, weights, {});
}

PlannedSteps plan_step_memory(const Scenario& given, const PredictorWeights& weights,
                              const PlanManner& manner) {
  require_sound(given);
  const Scenario scenario = with_plan_alone(given);
  const Deadline deadline = planning_deadline(scenario);
  const auto predictor = predictor_of(scenario, weights);
  TimedProgram base = time_step(scenario, *predictor);
  PlannedProgram plan = plan_of(scenario, *predictor, manner);
  TimedProgram planned = with_memory_limit(scenario, &plan.memory, std::move(plan.timed));
  PlannedSteps steps{std::move(base), std::move(planned), std::move(plan.memory)};
  for (TimedProgram* timed : {&steps.base, &steps.planned}) {
    timed->paces = rank_paces(scenario, timed->program, weights);
    deadline.check();
    timed->simulation.time_limit = deadline.left();
  }
  return steps;
}

StageMemoryPlan fullest_stage_without_plan(const Scenario& given, const PredictorWeights& weights) {
  constexpr Bytes kAny = Bytes(100'000'000'000'000);
  Scenario scenario = given;
  scenario.memory = {.planner = MemoryPlanner::none, .budget = kAny};
  const std::vector<StageMemoryPlan> stages = plan_step_memory(scenario, weights).memory.stages;
  return *std::ranges::max_element(stages, {}, &StageMemoryPlan::base_peak);
}

PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  return prediction_basis(scenario.predictor_form, gpu,
                          with_overlays(weights, scenario.overlays, gpu));
}

PredictionBasis prediction_basis(const Scenario& scenario, const PredictorWeights& weights,
                                 const TimedProgram& timed) {
  const GpuSpec& gpu = scenario.cluster.node.gpu;
  std::vector<Kernel> kernels;
  for (const TimedKernel& kernel : timed.kernels) kernels.push_back(kernel.kernel);
  return prediction_basis(scenario.predictor_form, gpu,
                          with_overlays(weights, scenario.overlays, gpu), kernels);
}

}  // namespace tessera
