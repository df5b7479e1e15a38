#include "sim/plan/memory/optimizer_offload.h"

#include <algorithm>
#include <string>

#include "hw/units/text.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

constexpr std::int32_t kNoWait = -1;

bool updates(const ProgramOp& op, const Program& program) {
  return op.kind == OpKind::kernels && op.phase == Phase::optimizer &&
         program.segment(op.segment).name.starts_with("optimizer");
}

ProgramOp copy(OpKind kind, Bytes bytes, std::int32_t after) {
  ProgramOp op;
  op.kind = kind;
  op.stream = kind == OpKind::copy_in ? StreamKind::host_to_device : StreamKind::device_to_host;
  op.phase = Phase::optimizer;
  op.bytes = bytes;
  op.waits = {after, kNoWait};
  (kind == OpKind::copy_in ? op.allocated : op.freed) = bytes;
  return op;
}

/// `ops` with `added` ahead of position `at`; waits follow their ops.
void insert(std::vector<ProgramOp>& ops, std::int32_t at, const std::vector<ProgramOp>& added) {
  const auto count = static_cast<std::int32_t>(added.size());
  for (std::size_t i = static_cast<std::size_t>(at); i < ops.size(); ++i)
    for (std::int32_t& wait : ops[i].waits)
      if (wait >= at) wait += count;
  ops.insert(ops.begin() + at, added.begin(), added.end());
}

/// Copies around the update. False: the stage updates nothing.
bool copy_states(RankProgram& stage, Bytes states, SegmentId empty_segment,
                 const Program& program) {
  const auto is_update = [&](const ProgramOp& op) { return updates(op, program); };
  const auto first = std::ranges::find_if(stage.ops, is_update);
  if (first == stage.ops.end() || states <= Bytes(0)) return false;
  const auto begin = static_cast<std::int32_t>(first - stage.ops.begin());
  std::int32_t last_kernels = kNoWait;
  for (std::int32_t i = 0; i < begin; ++i)
    if (stage.ops[static_cast<std::size_t>(i)].kind == OpKind::kernels) last_kernels = i;
  ProgramOp wait;  // the update is behind it on its stream
  wait.segment = empty_segment;
  wait.phase = Phase::optimizer;
  wait.waits = {begin, kNoWait};
  insert(stage.ops, begin, {copy(OpKind::copy_in, states, last_kernels), wait});
  std::int32_t last = kNoWait;
  for (std::int32_t i = begin; i < static_cast<std::int32_t>(stage.ops.size()); ++i)
    if (is_update(stage.ops[static_cast<std::size_t>(i)])) last = i;
  insert(stage.ops, last + 1, {copy(OpKind::copy_out, states, last)});
  return true;
}

}  // namespace

void offload_optimizer(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes,
                       const AllocatorSetting& allocator, Program& program) {
  const std::string name = "stage " + std::to_string(plan.stage) + ": ";
  RankProgram& stage = program.stages[static_cast<std::size_t>(plan.stage)];
  const Bytes states = stage.static_parts[MemoryCategory::optimizer];
  const SegmentId empty(static_cast<std::int32_t>(program.segments.size()));
  program.segments.emplace_back();
  program.segments.back().name = "memory.wait";
  if (copy_states(stage, states, empty, program)) {
    stage.static_parts[MemoryCategory::optimizer] = Bytes(0);
    stage.static_memory -= states;
    plan.static_bytes -= states;
    plan.copied = states + states;
    plan.host_bytes = states;
    plan.decisions.copied_out = plan.decisions.copied_in = 1;
  }
  const MemoryProfile profile = profile_memory(program, plan.stage, allocator);
  plan.planned_peak = plan.lower_bound = profile.peak;
  plan.planned_reserved = profile.reserved;
  plan.missing = std::max(missing_bytes(profile, allocator, budget), plan.host_bytes - host_bytes);
  plan.feasible = plan.missing <= Bytes(0);
  if (plan.feasible) return;
  const bool on_host = plan.host_bytes > host_bytes;
  plan.infeasible =
      name +
      (on_host ? "its optimizer states need " + to_text(plan.host_bytes) + " of host memory, "
               : "without its optimizer states the peak is " + to_text(plan.planned_peak) + ", ") +
      to_text(plan.missing) + " more than " + (on_host ? "there is" : "the budget");
}

Seconds offload_time(const StageMemoryPlan& plan, const remat::HostLink& link) {
  const double each = static_cast<double>(link.latency) +
                      static_cast<double>(plan.host_bytes.value()) / link.bytes_per_ns;
  return plan.host_bytes > Bytes(0) ? Seconds(2e-9 * each) : Seconds(0);
}

}  // namespace tessera
