#include "sim/remat/gap_plan.h"

#include <algorithm>

namespace tessera::remat {
namespace {

struct Use {
  Stage stage;
  TensorId tensor;
};

struct Live {
  Stage last = 0;
  bool hosted = false;
  std::vector<Run> runs;
};

/// One reverse sweep over the operators: all uses of an operator's outputs are known at its turn.
class Decoder {
 public:
  Decoder(const Graph& graph, const GapPlan& choices)
      : graph_(graph), choices_(choices), extra_(graph.tensors()) {}

  StagePlan run() {
    plan_.run_begin.assign(graph_.tensors(), 0);
    plan_.run_count.assign(graph_.tensors(), 0);
    again_.resize(graph_.ops() + 1);
    for (OpId op = graph_.ops() - 1; op >= 0; --op) decide(op);
    plan_.again_begin.assign(1, 0);
    for (auto& ops : again_) {
      plan_.again.insert(plan_.again.end(), ops.rbegin(), ops.rend());
      plan_.again_begin.push_back(static_cast<std::int32_t>(plan_.again.size()));
    }
    return plan_;
  }

 private:
  std::vector<Use> uses(OpId op) const {
    std::vector<Use> uses;
    for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
      for (const OpId reader : graph_.consumers(q)) uses.push_back({reader, q});
      if (graph_.kept(q)) uses.push_back({graph_.ops(), q});
      for (const Stage t : extra_[q]) uses.push_back({t, q});
    }
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
      return a.stage != b.stage ? a.stage < b.stage : a.tensor < b.tensor;
    });
    const auto same = [](const Use& a, const Use& b) {
      return a.stage == b.stage && a.tensor == b.tensor;
    };
    uses.erase(std::unique(uses.begin(), uses.end(), same), uses.end());
    return uses;
  }

  GapChoice choice(TensorId q, Stage last, Stage t) const {
    if (t == last + 1) return GapChoice::hold;
    const std::int32_t gap = choices_.gap_at(q, t);
    // Uses behind the last of the program are those of operators that run again.
    if (gap < 0) return GapChoice::run_again;
    if (last > choices_.gaps()[gap].from) return GapChoice::hold;
    return choices_.gaps()[gap].choice;
  }

  void decide(OpId op) {
    const TensorId first = graph_.first_output(op);
    std::vector<Live> live(graph_.output_count(op));
    for (Live& entry : live) entry = {.last = op, .runs = {{.first = op, .last = op}}};
    const std::vector<Use> all = uses(op);
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
      const Stage t = all[i].stage;
      bool again = false;
      for (end = i; end < all.size() && all[end].stage == t; ++end)
        again |=
            choice(all[end].tensor, live[all[end].tensor - first].last, t) == GapChoice::run_again;
      if (again && graph_.recomputable(op)) {
        run_again(op, t);
        for (std::size_t k = i; k < end; ++k) {
          live[all[k].tensor - first].runs.push_back(
              {.first = t, .last = t, .origin = Origin::run_again});
          live[all[k].tensor - first].last = t;
        }
        continue;
      }
      for (std::size_t k = i; k < end; ++k) bridge(all[k].tensor, live[all[k].tensor - first], t);
    }
    for (std::size_t k = 0; k < live.size(); ++k) {
      plan_.run_begin[first + static_cast<TensorId>(k)] =
          static_cast<std::int32_t>(plan_.runs.size());
      plan_.run_count[first + static_cast<TensorId>(k)] =
          static_cast<std::int32_t>(live[k].runs.size());
      plan_.runs.insert(plan_.runs.end(), live[k].runs.begin(), live[k].runs.end());
    }
  }

  void bridge(TensorId q, Live& live, Stage t) const {
    Run& run = live.runs.back();
    if (choice(q, live.last, t) == GapChoice::swap) {
      run.to_host = !live.hosted;
      run.hold_to = run.last;
      live.hosted = true;
      live.runs.push_back({.first = t, .last = t, .origin = Origin::copied_in, .copy_from = t});
    } else {
      run.last = t;
    }
    live.last = t;
  }

  void run_again(OpId op, Stage t) {
    again_[t].push_back(op);
    for (const TensorId q : graph_.inputs(op)) extra_[q].push_back(t);
  }

  const Graph& graph_;
  const GapPlan& choices_;
  std::vector<std::vector<Stage>> extra_;
  std::vector<std::vector<OpId>> again_;
  StagePlan plan_;
};

}  // namespace

GapPlan::GapPlan(const Graph& graph) : graph_(graph) {
  for (TensorId q = 0; q < graph.tensors(); ++q) {
    begin_.push_back(static_cast<std::int32_t>(gaps_.size()));
    Stage from = graph.producer(q);
    for (const OpId reader : graph.consumers(q)) {
      add(q, from, reader);
      from = reader;
    }
    if (graph.kept(q)) add(q, from, graph.ops());
  }
  begin_.push_back(static_cast<std::int32_t>(gaps_.size()));
}

void GapPlan::add(TensorId tensor, Stage from, Stage to) {
  Gap& gap = gaps_.emplace_back(Gap{tensor, from, to});
  if (is_away(gap)) gap.choice = GapChoice::run_again;
}

std::int32_t GapPlan::gap_at(TensorId tensor, Stage t) const {
  const auto begin = gaps_.begin() + begin_[tensor];
  const auto end = gaps_.begin() + begin_[tensor + 1];
  const auto found =
      std::lower_bound(begin, end, t, [](const Gap& gap, Stage stage) { return gap.to < stage; });
  return found == end ? -1 : static_cast<std::int32_t>(found - gaps_.begin());
}

StagePlan GapPlan::decode() const {
  return Decoder(graph_, *this).run();
}

}  // namespace tessera::remat
