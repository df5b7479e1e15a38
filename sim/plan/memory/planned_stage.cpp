#include "sim/plan/memory/planned_stage.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hw/units/text.h"
#include "sim/plan/memory/stage_transfers.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

ProgramBlock block_of(const ChunkMemoryPlan& chunk, const std::string& name) {
  ProgramBlock block;
  block.name = name;
  block.spans_layers = true;
  for (const StageTensor& tensor : chunk.ops.tensors)
    block.storages.push_back({tensor.name, tensor.role, StorageScope::local, tensor.bytes});
  return block;
}

/// `stage` with gathers where they can start, for who counts memory in the order of its ops.
RankProgram with_early_gathers(const RankProgram& stage, bool single_queue) {
  const std::vector<std::size_t> places = earliest_places(stage, single_queue);
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(places[a], !gathers(stage.ops[a])) <
           std::pair(places[b], !gathers(stage.ops[b]));
  });
  RankProgram early = stage;
  early.ops.clear();
  for (const std::size_t op : order) early.ops.push_back(stage.ops[op]);
  return early;
}

/// What plans leave free for buffers that they do not see. Too little makes a step run short of
/// memory, too much leaves no plan; where a plan runs layers again far ahead of their backward
/// pass, gathered parameters take more in between, so that what was short need not be what is
/// missing.
class RoomForBuffers {
 public:
  /// The next to try where `left` was too little by `missing`.
  Bytes behind_shortage(Bytes left, Bytes missing) {
    too_little_ = left;
    const Bytes next = left + missing;
    return too_much_ > Bytes(0) && next >= too_much_ ? between() : next;
  }
  /// Where no plan left so much.
  Bytes behind_refusal(Bytes left) {
    too_much_ = left;
    return between();
  }

 private:
  Bytes between() const {
    return Bytes(too_little_.value() + (too_much_ - too_little_).value() / 2);
  }

  Bytes too_little_, too_much_;
};

}  // namespace

GradientStore gradient_store(const StepOptions& step) {
  if (scatters_gradients(step) && step.data_parallel.reduce_each_micro_batch)
    return GradientStore::every;
  const bool first = scatters_gradients(step) || step.framework.gradients_set_to_none;
  return first ? GradientStore::first : GradientStore::never;
}

void write_stage(const StageMemoryPlan& plan, PassStyle style, Program& program) {
  std::vector<std::string> names;
  for (const ProgramBlock& known : program.blocks) names.push_back(known.name);
  std::vector<MemoryPasses> chunks;
  for (const ChunkMemoryPlan& chunk : plan.chunks) {
    const auto block = static_cast<std::int32_t>(program.blocks.size());
    program.blocks.push_back(block_of(chunk, "stage " + std::to_string(plan.stage)));
    chunks.push_back(write_passes(chunk.ops, chunk.graph, chunk.schedule, block, names,
                                  program.segments, style.apart));
    chunks.back().chunk = chunk.chunk;
    chunks.back().splits = chunk.splits;
  }
  const SegmentId empty(static_cast<std::int32_t>(program.segments.size()));
  program.segments.emplace_back();
  program.segments.back().name = "memory.wait";
  RankProgram& stage = program.stages[static_cast<std::size_t>(plan.stage)];
  stage = put_planned_passes(stage, chunks, style.store, empty, program.segments);
}

void measure_stage(StageMemoryPlan& plan, Bytes budget, TimedProgram& timed) {
  const AllocatorSetting& allocator = timed.library_memory.allocator;
  RankProgram& stage = timed.program.stages[static_cast<std::size_t>(plan.stage)];
  RankProgram early = with_early_gathers(stage, timed.single_hardware_queue);
  std::swap(stage, early);
  const MemoryProfile profile = profile_memory(timed.program, plan.stage, allocator);
  std::swap(stage, early);
  plan.planned_peak = profile.peak;
  plan.planned_reserved = profile.reserved;
  plan.missing = missing_bytes(profile, allocator, budget);
}

/// Makes plans by `make` until the step that one of them gives fits, in the program too.
void fit_stage(const std::function<void()>& make, Bytes budget, PassStyle style,
               StageMemoryPlan& plan, TimedProgram& timed) {
  constexpr int kMostRounds = 6;
  const auto before = timed.program.stages[static_cast<std::size_t>(plan.stage)];
  RoomForBuffers room;
  Bytes missing;
  for (int round = 0; round < kMostRounds; ++round) {
    make();
    if (!plan.feasible && plan.buffer_bytes == Bytes(0)) return;
    if (plan.feasible) {
      write_stage(plan, style, timed.program);
      measure_stage(plan, budget, timed);
      if (plan.missing <= Bytes(0)) return;
      timed.program.stages[static_cast<std::size_t>(plan.stage)] = before;
      missing = plan.missing;
    }
    plan.buffer_bytes = plan.feasible ? room.behind_shortage(plan.buffer_bytes, plan.missing)
                                      : room.behind_refusal(plan.buffer_bytes);
  }
  plan.feasible = false;
  plan.missing = missing;
  plan.infeasible = "stage " + std::to_string(plan.stage) +
                    ": with gathered parameters and what the allocator holds besides every plan " +
                    "tried needs " + to_short_text(missing) + " more than the budget";
}

void plan_stage(StagePlanner& planner, PassStyle style, StageMemoryPlan& plan,
                TimedProgram& timed) {
  RankProgram& stage = timed.program.stages[static_cast<std::size_t>(plan.stage)];
  const RankProgram unplanned = stage;
  StageMemoryPlan by_layers = plan;
  fit_stage([&] { planner.plan(plan); }, planner.budget(), style, plan, timed);
  const bool fits_at_once = plan.feasible && plan.buffer_bytes == Bytes(0);
  if (fits_at_once || !planner.has_plans_by_layers(plan)) return;
  RankProgram planned = std::exchange(stage, unplanned);
  fit_stage([&] { planner.plan_layers(by_layers); }, planner.budget(), style, by_layers, timed);
  const bool better =
      by_layers.feasible && (!plan.feasible || by_layers.planned_time < plan.planned_time);
  if (better)
    plan = std::move(by_layers);
  else
    stage = std::move(planned);
}

}  // namespace tessera
