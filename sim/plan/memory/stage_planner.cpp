#include "sim/plan/memory/stage_planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hw/units/text.h"
#include "sim/plan/memory/megatron_planner.h"
#include "sim/plan/memory/split_micro_batches.h"
#include "sim/remat/bound.h"
#include "sim/remat/tessera/rest_planner.h"
#include "sim/scenario/names.h"
#include "workloads/parallel/stage_program.h"
#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {
namespace {

Seconds in_seconds(remat::Nanoseconds time) {
  return Seconds(static_cast<double>(time) * 1e-9);
}

/// What a waiting micro-batch may hold: up to an equal share of the room.
std::vector<Bytes> shares(Bytes most) {
  constexpr int kSteps = 10;
  std::vector<Bytes> list;
  for (int i = 0; i <= kSteps; ++i) list.push_back(Bytes(most.value() * i / kSteps));
  return list;
}

/// Whether every backward pass of `chunk`, which is not split, follows on its forward pass.
bool turns_at_once(const RankProgram& stage, int chunk, const SplitMicroBatches& split) {
  for (std::size_t i = 0; i < stage.passes.size(); ++i) {
    const PassSpan& pass = stage.passes[i];
    if (pass.chunk != chunk || pass.part != PassPart::forward || split.contains(pass)) continue;
    if (i + 1 == stage.passes.size()) return false;
    const PassSpan& next = stage.passes[i + 1];
    if (next.chunk != chunk || next.micro_batch != pass.micro_batch) return false;
  }
  return true;
}

bool is_same(const remat::PlanRequest& a, const remat::PlanRequest& b) {
  return a.budget == b.budget && a.host_bytes == b.host_bytes && a.effort == b.effort &&
         a.link == b.link;
}

}  // namespace

const remat::PlanResult* KnownPlans::find(const remat::Graph& graph,
                                          const remat::PlanRequest& request, int depth) const {
  const auto [begin, end] = known_.equal_range(key_of(graph, depth));
  const auto found = std::find_if(begin, end, [&](const auto& entry) {
    return is_same(entry.second.request, request) && entry.second.graph.same_problem(graph);
  });
  return found == end ? nullptr : &found->second.result;
}

void KnownPlans::add(const remat::Graph& graph, const remat::PlanRequest& request, int depth,
                     const remat::PlanResult& result) {
  known_.emplace(key_of(graph, depth), Known{graph, request, result});
}

remat::Nanoseconds KnownPlans::bound(const remat::Graph& graph, const remat::PlanRequest& request,
                                     remat::Nanoseconds time) {
  const Key key = key_of(graph, 0);
  const auto [begin, end] = bounds_.equal_range(key);
  const auto found = std::find_if(begin, end, [&](const auto& entry) {
    const Bounded& known = entry.second;
    return known.time == time && is_same(known.request, request) && known.graph.same_problem(graph);
  });
  if (found != end) return found->second.bound;
  const remat::Nanoseconds bound = remat::time_bound(graph, request.budget, request.link, time);
  bounds_.emplace(key, Bounded{graph, request, time, bound});
  return bound;
}

int in_flight(const RankProgram& stage) {
  const SplitMicroBatches split(stage);
  std::set<std::pair<std::int32_t, std::int32_t>> waiting;  // chunk and micro-batch
  std::size_t most = 1;
  for (const PassSpan& pass : stage.passes) {
    const std::pair key{pass.chunk, pass.micro_batch};
    waiting.insert(key);
    most = std::max(most, waiting.size());
    const bool ends = pass.part == PassPart::weight_gradient ||
                      (pass.part == PassPart::backward && !split.contains(pass));
    if (ends) waiting.erase(key);
  }
  return static_cast<int>(most);
}

std::vector<ChunkMemoryPlan> unplanned_chunks(const ModelGraph& graph, const StepOptions& step,
                                              const RankProgram& stage) {
  const std::vector<int> layers = layers_of_parts(graph, step);
  const VirtualPipeline pipeline(step);
  const SplitMicroBatches split(stage);
  std::vector<ChunkMemoryPlan> chunks;
  for (int chunk = 0; chunk < pipeline.chunks(); ++chunk) {
    const StageBlocks blocks = blocks_of_part(graph, pipeline.part({stage.stage, chunk}), layers);
    for (const bool splits : {false, true}) {
      const auto count = std::ranges::count_if(stage.passes, [&](const PassSpan& pass) {
        return pass.chunk == chunk && pass.part == PassPart::forward &&
               split.contains(pass) == splits;
      });
      if (count == 0) continue;
      ChunkMemoryPlan& added = chunks.emplace_back();
      added.chunk = chunk;
      added.splits = splits;
      added.waits = splits || !turns_at_once(stage, chunk, split);
      added.share = static_cast<double>(count) / static_cast<double>(step.micro_batches());
      added.ops = stage_ops(graph, blocks, splits, step.framework.keeps_sent);
    }
  }
  return chunks;
}

Bytes least_memory(const ModelGraph& graph, const StepOptions& step, const RankProgram& stage,
                   Bytes workspaces) {
  const OpTime no_time = [](const GraphOp&) { return OpCost(); };
  const std::vector<int> layers = layers_of_parts(graph, step);
  const VirtualPipeline pipeline(step);
  const SplitMicroBatches split(stage);
  std::set<std::pair<std::vector<int>, bool>> seen;  // chunks of equal blocks, as most are
  Bytes least;
  for (const PassSpan& pass : stage.passes) {
    if (pass.part != PassPart::forward) continue;
    const bool splits = split.contains(pass);
    const StageBlocks blocks =
        blocks_of_part(graph, pipeline.part({stage.stage, pass.chunk}), layers);
    const auto first = graph.order.begin();
    if (!seen.emplace(std::vector<int>(first + blocks.begin, first + blocks.end), splits).second)
      continue;
    const StageGraph planned =
        stage_graph(stage_ops(graph, blocks, splits, step.framework.keeps_sent), "", no_time,
                    {.static_bytes = stage.static_memory + workspaces});
    least = std::max(least, Bytes(remat::lower_bound(planned.graph).bytes));
  }
  return least;
}

void leave_alone(StageMemoryPlan& plan, const OpTime& time) {
  Seconds sum;
  for (ChunkMemoryPlan& chunk : plan.chunks) {
    const StageGraph graph = stage_graph(chunk.ops, "", time, {});
    chunk.base_times = chunk.planned_times = base_times(graph);
    sum += in_seconds(graph.graph.unplanned_time()) * chunk.share;
  }
  plan.base_time = plan.planned_time = sum;
}

void StagePlanner::plan(StageMemoryPlan& result) {
  plan_ = &result;
  const Depth depth = settings_.thorough ? Depth::thorough : Depth::fast;
  if (result.in_flight == 1) return accept(without_waiting(depth));
  const Bytes room = budget_ - result.static_bytes - result.buffer_bytes;
  accept(best_of_shares(room / result.in_flight));
}

void StagePlanner::plan_layers(StageMemoryPlan& result) {
  plan_ = &result;
  accept(attempt(Bytes(0), Depth::layers));
}

StagePlanner::Attempts StagePlanner::without_waiting(Depth depth) const {
  /// A fast search takes 40 s for the 96 layers of GPT-3 175B on one stage, and finds little more
  /// than a draft.
  constexpr std::size_t kMany = 4000;
  std::size_t ops = 0;  // of chunks with transfers beside them, whose plans are seldom free
  for (const ChunkMemoryPlan& chunk : plan_->chunks)
    if (!chunk.ops.transfers.empty()) ops = std::max(ops, chunk.ops.ops.size());
  const bool many = settings_.planner == MemoryPlanner::tessera && ops > kMany;
  if (drafts_ || (many && depth == Depth::fast)) {
    Attempts drafted = attempt(Bytes(0), Depth::draft);
    if (drafts_ || is_feasible(drafted)) return drafted;
  }
  return attempt(Bytes(0), depth);
}

StagePlanner::Attempts StagePlanner::best_of_shares(Bytes most) const {
  constexpr std::size_t kWorthMore = 2;
  struct Drafted {
    Bytes share;
    Attempts attempts;
  };
  const bool drafts = settings_.planner == MemoryPlanner::tessera;
  std::vector<Drafted> drafted;
  for (const Bytes share : shares(most))
    drafted.push_back({share, attempt(share, drafts ? Depth::draft : Depth::fast)});
  std::ranges::stable_sort(drafted, [](const Drafted& a, const Drafted& b) {
    return is_better(a.attempts, b.attempts);
  });
  Attempts best = std::move(drafted.front().attempts);
  // What few sweeps do not find, more may.
  const bool found = is_feasible(best);
  if (drafts_) return best;
  const std::size_t again = !drafts ? 0 : found ? kWorthMore : drafted.size();
  Bytes best_share = drafted.front().share;
  for (std::size_t i = 0; i < again; ++i) {
    Attempts tried = attempt(drafted[i].share, Depth::fast);
    const bool first = !found && i == 0;  // drafts that do not fit say nothing about the least peak
    if (!first && !is_better(tried, best)) continue;
    best = std::move(tried);
    best_share = drafted[i].share;
  }
  if (!settings_.thorough || !is_feasible(best)) return best;
  Attempts thorough = attempt(best_share, Depth::thorough);
  return is_better(thorough, best) ? std::move(thorough) : std::move(best);
}

bool StagePlanner::is_feasible(const Attempts& attempts) {
  return std::ranges::all_of(attempts, [](const Attempt& made) { return made.result.feasible; });
}

bool StagePlanner::is_better(const Attempts& a, const Attempts& b) {
  struct Score {
    int infeasible = 0;
    remat::ByteCount bound = 0;
    remat::Nanoseconds time = 0;
  };
  const auto score = [](const Attempts& attempts) {
    Score sum;
    for (const Attempt& made : attempts) {
      sum.infeasible += made.result.feasible ? 0 : 1;
      sum.bound = std::max(sum.bound, made.result.lower_bound.bytes);
      sum.time += made.result.cost.time;
    }
    return sum;
  };
  const Score left = score(a), right = score(b);
  if (left.infeasible != right.infeasible) return left.infeasible < right.infeasible;
  return left.infeasible > 0 ? left.bound < right.bound : left.time < right.time;
}

StagePlanner::Attempts StagePlanner::attempt(Bytes share, Depth depth) const {
  Attempts attempts;
  for (const ChunkMemoryPlan& chunk : plan_->chunks) {
    Attempt made{.graph = graph_of(chunk, share), .result = {}};
    made.result = solved_once(chunk.ops, made.graph, depth);
    attempts.push_back(std::move(made));
  }
  return attempts;
}

remat::PlanResult StagePlanner::solved_once(const StageOps& ops, const StageGraph& graph,
                                            Depth depth) const {
  const remat::PlanRequest asked = request(depth);
  const auto how = static_cast<int>(depth);
  if (const remat::PlanResult* known = known_.find(graph.graph, asked, how)) return *known;
  remat::PlanResult result = solve(ops, graph, depth);
  known_.add(graph.graph, asked, how, result);
  return result;
}

/// With `share` for each of the micro-batches that wait.
StageGraph StagePlanner::graph_of(const ChunkMemoryPlan& chunk, Bytes share) const {
  const int others = plan_->in_flight - 1;
  StageRoom room{.static_bytes = plan_->static_bytes + plan_->buffer_bytes +
                                 Bytes(share.value() * static_cast<std::int64_t>(others))};
  room.copies = copies();
  if (others > 0 && chunk.waits)
    room.while_waiting = std::max(Bytes(0), budget_ - room.static_bytes - share);
  return stage_graph(chunk.ops, "stage " + std::to_string(plan_->stage), time_, room);
}

remat::PlanRequest StagePlanner::request(Depth depth) const {
  remat::PlanRequest request{.budget = budget_.value()};
  if (settings_.swap) request.link = link_;
  request.host_bytes = host_bytes_.value() / plan_->in_flight;
  request.effort = depth == Depth::thorough ? remat::Effort::thorough : remat::Effort::fast;
  return request;
}

/// Without a bound on its time, which accept() asks for.
remat::PlanResult StagePlanner::solve(const StageOps& ops, const StageGraph& graph,
                                      Depth depth) const {
  /// Of the sweeps of a plan for the rest of a step.
  constexpr double kDraft = 0.25;
  remat::PlanResult result;
  result.lower_bound = remat::lower_bound(graph.graph);
  if (budget_.value() < result.lower_bound.bytes) return result;
  const remat::PlanRequest asked = request(depth);
  auto planner = depth == Depth::layers
                     ? make_megatron_planner(MemoryPlanner::megatron_block, 0, ops, graph)
                     : make_megatron_planner(settings_.planner, settings_.layers, ops, graph);
  if (!planner) planner = remat::make_planner(name_of(settings_.planner));
  remat::PlannedSchedule planned = depth == Depth::draft
                                       ? remat::plan_by_prices(graph.graph, asked, kDraft)
                                       : planner->plan(graph.graph, asked);
  result.schedule = std::move(planned.schedule);
  result.note = std::move(planned.note);
  if (result.schedule.empty()) return result;
  result.cost = remat::replay(graph.graph, result.schedule, asked.link);
  result.feasible = result.cost.peak <= asked.budget && result.cost.host_peak <= asked.host_bytes;
  if (!result.feasible && planned.least_peak)
    result.cost.peak = std::min(result.cost.peak, *planned.least_peak);
  return result;
}

/// What waiting micro-batches keep is a plan's choice, not a need.
Bytes StagePlanner::least_of_any_plan(const StageOps& ops) const {
  const StageGraph alone =
      stage_graph(ops, "", time_, {.static_bytes = plan_->static_bytes + plan_->buffer_bytes});
  return Bytes(remat::lower_bound(alone.graph).bytes);
}

void StagePlanner::accept(Attempts made) {
  StageMemoryPlan& plan = *plan_;
  plan.feasible = true;
  plan.base_time = plan.planned_time = plan.recompute = plan.stall = Seconds(0);
  plan.copied = plan.host_bytes = plan.lower_bound = Bytes(0);
  plan.certified_gap = 0;
  plan.decisions = {};
  for (std::size_t i = 0; i < made.size(); ++i) {
    const remat::Graph& graph = made[i].graph.graph;
    remat::PlanResult& result = made[i].result;
    const double share = plan.chunks[i].share;
    plan.lower_bound = std::max(plan.lower_bound, least_of_any_plan(plan.chunks[i].ops));
    plan.base_time += in_seconds(graph.unplanned_time()) * share;
    plan.planned_time += in_seconds(result.cost.time) * share;
    plan.recompute += in_seconds(result.cost.recompute) * share;
    plan.stall += in_seconds(result.cost.stall) * share;
    plan.copied += Bytes(result.cost.copied);
    plan.host_bytes = std::max(plan.host_bytes, Bytes(result.cost.host_peak * plan.in_flight));
    plan.note = result.note;
    if (!result.feasible) {
      refuse(made[i]);
      continue;
    }
    const remat::DecisionCounts counts = remat::count_decisions(graph, result.schedule);
    plan.decisions.kept += counts.kept;
    plan.decisions.run_again += counts.run_again;
    plan.decisions.copied_out += counts.copied_out;
    plan.decisions.copied_in += counts.copied_in;
    plan.chunks[i].base_times = base_times(made[i].graph);
    plan.chunks[i].planned_times = planned_times(made[i].graph, result.schedule, result.cost);
    plan.chunks[i].copies_out = copies_out(made[i].graph, result.schedule, link_);
    plan.chunks[i].schedule_time = result.cost.time;
    plan.chunks[i].schedule = std::move(result.schedule);
    plan.chunks[i].graph = std::move(made[i].graph);
  }
}

void StagePlanner::certify(StageMemoryPlan& plan) {
  if (!certifies_ || !plan.feasible) return;
  plan_ = &plan;
  for (const ChunkMemoryPlan& chunk : plan.chunks) {
    if (chunk.schedule.empty()) continue;
    const auto bound = static_cast<double>(
        known_.bound(chunk.graph.graph, request(Depth::fast), chunk.schedule_time));
    const double gap = bound > 0 ? static_cast<double>(chunk.schedule_time) / bound - 1 : 0;
    plan.certified_gap = std::max(plan.certified_gap, gap);
  }
}

void StagePlanner::refuse(const Attempt& made) {
  const remat::PlanResult& result = made.result;
  plan_->feasible = false;
  const bool proven = budget_.value() < result.lower_bound.bytes;
  const bool on_host = !proven && result.cost.peak <= budget_.value();  // what is missing
  const Bytes room = on_host ? host_bytes_ / plan_->in_flight : budget_;
  const Bytes needed(on_host  ? result.cost.host_peak
                     : proven ? result.lower_bound.bytes
                              : result.cost.peak);
  plan_->missing = needed - room;
  const remat::OpId op = result.lower_bound.op;
  const std::string name = op < 0 ? "its kept tensors" : std::string(made.graph.graph.op_name(op));
  const std::string what = on_host  ? "copies of a micro-batch need"
                           : proven ? name + " needs"
                                    : "the lowest peak found is";
  plan_->infeasible = "stage " + std::to_string(plan_->stage) + ": " + what + " " +
                      to_short_text(needed) + ", " + to_short_text(plan_->missing) + " more than " +
                      (on_host ? "its share of host memory" : "the budget");
}

}  // namespace tessera
