#include "sim/plan/memory/optimizer_offload.h"

#include <algorithm>
#include <string>

#include "hw/units/text.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/optimizers/optimizer_step.h"

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

/// Ahead of the copy to the device, and behind the one back.
std::vector<DriveTransfer> put_on_drives(RankProgram& stage, Bytes states, const DriveRates& rates,
                                         Program& program) {
  std::vector<DriveTransfer> transfers;
  const auto transfer = [&](const char* name, BytesPerSecond rate, std::int32_t after) {
    const SegmentId segment(static_cast<std::int32_t>(program.segments.size()));
    program.segments.emplace_back().name = name;
    transfers.push_back({segment, rates.latency + states / rate});
    ProgramOp op;
    op.stream = StreamKind::host;
    op.phase = Phase::optimizer;
    op.segment = segment;
    op.waits = {after, kNoWait};
    return op;
  };
  const auto of_states = [&](OpKind kind) {
    const auto found = std::ranges::find_if(stage.ops, [&](const ProgramOp& op) {
      return op.kind == kind && op.phase == Phase::optimizer;
    });
    return static_cast<std::int32_t>(found - stage.ops.begin());
  };
  const std::int32_t in = of_states(OpKind::copy_in);
  insert(stage.ops, in, {transfer("optimizer.from_drives", rates.read, kNoWait)});
  stage.ops[static_cast<std::size_t>(in) + 1].waits[1] = in;
  const std::int32_t out = of_states(OpKind::copy_out);
  insert(stage.ops, out + 1, {transfer("optimizer.to_drives", rates.write, out)});
  return transfers;
}

/// What the CPU works on, of the rank's shard.
struct CpuBytes {
  Bytes gradients, weights;  ///< over the link
  Bytes held;                ///< in host memory, besides gradients
};
CpuBytes cpu_bytes(const RankProgram& stage, const StepOptions& step) {
  const CategoryBytes& parts = stage.static_parts;
  const Bytes states = parts[MemoryCategory::optimizer];
  const std::int64_t state = state_bytes(step, 1)[MemoryCategory::optimizer].value();
  const std::int64_t shard = state > 0 ? states.value() / state : 0;
  const auto of = [&](Precision format) { return Bytes(element_bytes(format) * shard); };
  const bool copies = !step.formats.master_weights;
  return {.gradients = of(step.formats.gradients),
          .weights = of(step.formats.parameters),
          .held = copies ? states + of(step.formats.parameters) : states};
}

/// The update of the device becomes nothing, behind which weights have come back.
void replace_update(RankProgram& stage, const CpuBytes& bytes, const Program& program,
                    SegmentId cpu, SegmentId empty) {
  const auto is_update = [&](const ProgramOp& op) { return updates(op, program); };
  const auto first = std::ranges::find_if(stage.ops, is_update);
  const auto begin = static_cast<std::int32_t>(first - stage.ops.begin());
  std::int32_t last_kernels = kNoWait;
  for (std::int32_t i = 0; i < begin; ++i)
    if (stage.ops[static_cast<std::size_t>(i)].kind == OpKind::kernels) last_kernels = i;
  for (ProgramOp& op : stage.ops)
    if (is_update(op)) op.segment = empty;
  ProgramOp update;
  update.stream = StreamKind::host;
  update.phase = Phase::optimizer;
  update.segment = cpu;
  update.waits = {begin, kNoWait};
  ProgramOp wait;
  wait.segment = empty;
  wait.phase = Phase::optimizer;
  wait.waits = {begin + 2, kNoWait};
  ProgramOp down = copy(OpKind::copy_out, bytes.gradients, last_kernels);
  ProgramOp up = copy(OpKind::copy_in, bytes.weights, begin + 1);
  down.freed = up.allocated = Bytes(0);  // both stay on the device too
  insert(stage.ops, begin, {down, update, up, wait});
}

/// Peak and feasibility of the rewritten stage.
void judge(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes, const AllocatorSetting& allocator,
           const Program& program) {
  const MemoryProfile profile = profile_memory(program, plan.stage, allocator);
  plan.planned_peak = plan.lower_bound = profile.peak;
  plan.planned_reserved = profile.reserved;
  plan.missing = std::max(missing_bytes(profile, allocator, budget), plan.host_bytes - host_bytes);
  plan.feasible = plan.missing <= Bytes(0);
  if (plan.feasible) return;
  const bool on_host = plan.host_bytes > host_bytes;
  plan.infeasible =
      "stage " + std::to_string(plan.stage) + ": " +
      (on_host ? "its optimizer states need " + to_short_text(plan.host_bytes) + " of host memory, "
               : "without its optimizer states the peak is " + to_short_text(plan.planned_peak) +
                     ", ") +
      to_short_text(plan.missing) + " more than " + (on_host ? "there is" : "the budget");
}

}  // namespace

CpuUpdate update_on_cpu(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes,
                        BytesPerSecond bandwidth, const AllocatorSetting& allocator,
                        const StepOptions& step, Program& program) {
  RankProgram& stage = program.stages[static_cast<std::size_t>(plan.stage)];
  const CpuBytes bytes = cpu_bytes(stage, step);
  const SegmentId cpu(static_cast<std::int32_t>(program.segments.size()));
  const SegmentId empty(cpu.index() + 1);
  for (const char* name : {"optimizer.on_cpu", "memory.wait"})
    program.segments.emplace_back().name = name;
  CpuUpdate update{.segment = cpu};
  const Bytes states = stage.static_parts[MemoryCategory::optimizer];
  if (states > Bytes(0)) {
    replace_update(stage, bytes, program, cpu, empty);
    stage.static_parts[MemoryCategory::optimizer] = Bytes(0);
    stage.static_memory -= states;
    plan.static_bytes -= states;
    plan.copied = bytes.gradients + bytes.weights;
    plan.host_bytes = bytes.held + bytes.gradients;
    plan.decisions.copied_out = plan.decisions.copied_in = 1;
    update.moved = bytes.held + bytes.held + bytes.gradients +
                   (step.formats.master_weights ? bytes.weights : Bytes(0));
    update.time = update.moved / bandwidth;
  }
  judge(plan, budget, host_bytes, allocator, program);
  return update;
}

DriveRates drive_rates_of(const NodeSpec& node) {
  const double drives = static_cast<double>(node.nvme_count) / node.gpu_count;
  return {.read = node.nvme_read_bandwidth * drives,
          .write = node.nvme_write_bandwidth * drives,
          .latency = node.nvme_latency};
}

void offload_optimizer(StageMemoryPlan& plan, Bytes budget, Bytes host_bytes,
                       const AllocatorSetting& allocator, Program& program,
                       const std::optional<DriveRates>& rates,
                       std::vector<DriveTransfer>* transfers) {
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
    if (rates) *transfers = put_on_drives(stage, states, *rates, program);
  }
  judge(plan, budget, host_bytes, allocator, program);
}

Seconds offload_time(const StageMemoryPlan& plan, const remat::HostLink& link) {
  const double both = 2 * static_cast<double>(link.latency) +
                      static_cast<double>(plan.copied.value()) / link.bytes_per_ns;
  return plan.host_bytes > Bytes(0) ? Seconds(1e-9 * both) : Seconds(0);
}

}  // namespace tessera
