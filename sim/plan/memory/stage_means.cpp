#include "sim/plan/memory/stage_means.h"

#include <optional>
#include <utility>
#include <vector>

#include "sim/plan/memory/packed_ops.h"

namespace tessera {
namespace {

bool is_better(bool feasible, Seconds time, bool other_feasible, Seconds other_time) {
  return feasible != other_feasible ? feasible : feasible && time < other_time;
}

/// Kernels that pack take time: each means is tried besides those that pack less.
std::vector<ActivationPacking> packings_up_to(ActivationPacking most) {
  std::vector<ActivationPacking> packings{ActivationPacking::as_it_is};
  if (most == ActivationPacking::eight_bit) packings.push_back(ActivationPacking::masks);
  if (most != ActivationPacking::as_it_is) packings.push_back(most);
  return packings;
}

void pack(StageMemoryPlan& plan, ActivationPacking packing) {
  if (packing == ActivationPacking::as_it_is) return;
  plan.packing = packing;
  for (ChunkMemoryPlan& chunk : plan.chunks) chunk.ops = with_packed_tensors(chunk.ops, packing);
}

}  // namespace

StageMeans::Variant StageMeans::tried(Variant variant, StagePlanner& planner,
                                      TimedProgram& timed) const {
  StageMemoryPlan& plan = variant.plan;
  Bytes states_copied, states_on_host;
  if (variant.offloads) {
    const bool on_drives = scenario_.memory.optimizer_states == OptimizerStates::on_nvme;
    const std::optional<DriveRates> rates =
        on_drives ? std::optional(drive_rates_of(scenario_.cluster.node)) : std::nullopt;
    offload_optimizer(plan, planner.budget(), host_bytes_, timed.library_memory.allocator,
                      timed.program, rates, &variant.drives);
    variant.offload = offload_time(plan, link_);
    for (const DriveTransfer& drive : variant.drives) variant.offload += drive.time;
    states_copied = plan.copied;
    states_on_host = plan.host_bytes;
  }
  if (variant.offloads && plan.feasible)
    leave_alone(plan, time_);
  else
    plan_stage(planner, style_, plan, timed);
  if (variant.offloads) {
    plan.copied += states_copied;
    plan.host_bytes += states_on_host;
  }
  variant.stage = timed.program.stages[static_cast<std::size_t>(plan.stage)];
  variant.time =
      plan.planned_time * static_cast<double>(scenario_.step.micro_batches()) + variant.offload;
  return variant;
}

void StageMeans::plan(StageMemoryPlan& plan, StagePlanner& planner, TimedProgram& timed) {
  RankProgram& stage = timed.program.stages[static_cast<std::size_t>(plan.stage)];
  const RankProgram before = stage;
  const bool may_offload = scenario_.memory.optimizer_states != OptimizerStates::on_gpu;
  std::optional<Variant> best;
  for (const ActivationPacking packing : packings_up_to(scenario_.memory.packing)) {
    StageMemoryPlan packed = plan;
    pack(packed, packing);
    for (const bool offloads : {false, true}) {
      if (offloads && !may_offload) continue;
      stage = before;
      Variant next = tried({.offloads = offloads,
                            .plan = packed,
                            .stage = {},
                            .drives = {},
                            .offload = {},
                            .time = {}},
                           planner, timed);
      if (!best || is_better(next.plan.feasible, next.time, best->plan.feasible, best->time))
        best = std::move(next);
    }
  }
  plan = std::move(best->plan);
  planner.certify(plan);
  stage = std::move(best->stage);
  offload_ = best->offload;
  drives_ = std::move(best->drives);
  if (plan.packing != ActivationPacking::as_it_is)
    plan.note += std::string(plan.note.empty() ? "" : "; ") + "packed tensors wait";
  if (best->offloads)
    plan.note += std::string(plan.note.empty() ? "" : "; ") + "optimizer states wait off the GPU";
}

}  // namespace tessera
