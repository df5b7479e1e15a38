#include "sim/plan/memory/planned_stage.h"

#include <algorithm>
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

/// `stage` with ops at `places`, for who counts memory in their order.
RankProgram in_order_of(const std::vector<std::size_t>& places, const RankProgram& stage) {
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
  /// The next to try where `left` was too little by `missing`; more than that where a few times as
  /// much as was missing was too little still.
  Bytes behind_shortage(Bytes left, Bytes missing) {
    constexpr int kPatience = 5;
    too_little_ = left;
    const Bytes next = left + (++shortages_ > kPatience ? missing * 4 : missing);
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
  int shortages_ = 0;
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

void measure_stage(StageMemoryPlan& plan, Bytes budget, TimedProgram& timed,
                   const OpTime* reductions) {
  const AllocatorSetting& allocator = timed.library_memory.allocator;
  RankProgram& stage = timed.program.stages[static_cast<std::size_t>(plan.stage)];
  const bool single_queue = timed.single_hardware_queue;
  RankProgram ordered =
      in_order_of(reductions != nullptr
                      ? places_in_memory(stage, {timed.program.segments, *reductions, single_queue})
                      : earliest_places(stage, single_queue),
                  stage);
  std::swap(stage, ordered);
  const MemoryProfile profile = profile_memory(timed.program, plan.stage, allocator);
  std::swap(stage, ordered);
  plan.planned_peak = profile.peak;
  plan.planned_reserved = profile.reserved;
  plan.missing = missing_bytes(profile, allocator, budget);
}

namespace {

/// The next three of a ladder that all budgets share, each 8/9 of the one above: what is found for
/// one of them is found for larger budgets too.
std::vector<Bytes> smaller_budgets(Bytes budget) {
  constexpr int kSteps = 3;
  constexpr double kStep = 9.0 / 8;
  auto step = static_cast<double>(1 << 20);
  while (step * kStep <= static_cast<double>(budget.value())) step *= kStep;
  std::vector<Bytes> list;
  for (int i = 0; i < kSteps; ++i, step /= kStep)
    list.push_back(Bytes(static_cast<std::int64_t>(step)));
  return list;
}

/// A reduction of gradients beside the passes that holds a buffer of theirs.
bool frees_behind_passes(const ProgramOp& op) {
  return reduces(op) && is_collective(op.kind) && op.freed > Bytes(0);
}

/// What plan_stage() tries.
struct Candidate {
  StageMemoryPlan plan;
  RankProgram stage;
};

class StageFitting {
 public:
  StageFitting(StagePlanner& planner, PassStyle style, const StageMemoryPlan& plan,
               TimedProgram& timed)
      : planner_(planner),
        style_(style),
        unplanned_(plan),
        timed_(timed),
        before_(stage()),
        reduces_(std::ranges::any_of(before_.ops, frees_behind_passes)),
        walked_before_(reduces_ ? walked(Bytes(0)) : Seconds(0)) {}

  Candidate run() {
    Candidate best = fitted(false, false);
    const bool at_once = best.plan.feasible && best.plan.buffer_bytes == Bytes(0);
    const bool in_time = !reduces_ || (best.plan.feasible && !best.plan.waits_for_room);
    if (!in_time) take_better(fitted(false, true), best);
    if (at_once && in_time) return best;
    if (reduces_)
      for (const Bytes less : smaller_budgets(planner_.budget()))
        take_better(planned_for(less), best);
    if (!planner_.has_plans_by_layers(best.plan)) return best;
    Candidate layers = fitted(true, false);
    const bool in_time_too = layers.plan.feasible && !layers.plan.waits_for_room;
    take_better(std::move(layers), best);
    if (reduces_ && !in_time_too) take_better(fitted(true, true), best);
    return best;
  }

 private:
  RankProgram& stage() const {
    return timed_.program.stages[static_cast<std::size_t>(unplanned_.stage)];
  }

  static void take_better(Candidate next, Candidate& best) {
    if (!next.plan.feasible) return;
    if (!best.plan.feasible || next.plan.added_time < best.plan.added_time) best = std::move(next);
  }

  /// Plans of whole layers or of operators until the step that one of them gives fits, in the
  /// program too; `until_reduced`: with what reductions free counted until they end, so that
  /// nothing waits for it.
  Candidate fitted(bool by_layers, bool until_reduced) {
    constexpr int kMostRounds = 10;
    StageMemoryPlan plan = unplanned_;
    stage() = before_;
    RoomForBuffers room;
    Bytes missing;
    for (int round = 0; round < kMostRounds; ++round) {
      by_layers ? planner_.plan_layers(plan) : planner_.plan(plan);
      if (!plan.feasible && plan.buffer_bytes == Bytes(0)) return {std::move(plan), before_};
      if (plan.feasible) {
        write_stage(plan, style_, timed_.program);
        measure_stage(plan, planner_.budget(), timed_, until_reduced ? &planner_.time() : nullptr);
        if (plan.missing <= Bytes(0)) return with_time(std::move(plan));
        stage() = before_;
        missing = plan.missing;
      }
      plan.buffer_bytes = plan.feasible ? room.behind_shortage(plan.buffer_bytes, plan.missing)
                                        : room.behind_refusal(plan.buffer_bytes);
    }
    plan.feasible = false;
    plan.missing = missing;
    plan.infeasible = "stage " + std::to_string(plan.stage) +
                      ": with gathered parameters and what the allocator holds besides every " +
                      "plan tried needs " + to_short_text(missing) + " more than the budget";
    return {std::move(plan), before_};
  }

  /// As it is planned for less memory.
  Candidate planned_for(Bytes less) {
    StageMemoryPlan plan = unplanned_;
    stage() = before_;
    plan.buffer_bytes = planner_.budget() - less;
    planner_.plan(plan);
    if (!plan.feasible) return {std::move(plan), before_};
    write_stage(plan, style_, timed_.program);
    measure_stage(plan, planner_.budget(), timed_);
    plan.feasible = plan.missing <= Bytes(0);
    return with_time(std::move(plan));
  }

  /// What the step takes longer by it: as planned, or as gathers, reductions and the room that
  /// they leave have it, if that is more.
  Candidate with_time(StageMemoryPlan plan) const {
    std::int32_t micro_batches = 0;
    for (const PassSpan& pass : before_.passes)
      micro_batches = std::max(micro_batches, pass.micro_batch + 1);
    plan.added_time = (plan.planned_time - plan.base_time) * static_cast<double>(micro_batches);
    if (reduces_) {
      const Seconds waiting = walked(planner_.budget());
      plan.waits_for_room = waiting > walked(Bytes(0));
      plan.added_time = std::max(plan.added_time, waiting - walked_before_);
    }
    return {std::move(plan), stage()};
  }

  Seconds walked(Bytes limit) const {
    return walked_time(stage(), {.segments = timed_.program.segments,
                                 .time = planner_.time(),
                                 .single_queue = timed_.single_hardware_queue,
                                 .copies = planner_.copies(),
                                 .limit = limit,
                                 .held = unplanned_.static_bytes});
  }

  StagePlanner& planner_;
  PassStyle style_;
  const StageMemoryPlan& unplanned_;
  TimedProgram& timed_;
  RankProgram before_;
  bool reduces_;
  Seconds walked_before_;
};

}  // namespace

void plan_stage(StagePlanner& planner, PassStyle style, StageMemoryPlan& plan,
                TimedProgram& timed) {
  Candidate best = StageFitting(planner, style, plan, timed).run();
  plan = std::move(best.plan);
  timed.program.stages[static_cast<std::size_t>(plan.stage)] = std::move(best.stage);
}

}  // namespace tessera
