// Capuchin and Belady: relieve the highest peak of the replay, until there is none.
#include <algorithm>
#include <limits>

#include "sim/remat/baselines/baselines.h"
#include "sim/remat/gap_plan.h"
#include "sim/remat/tessera/plan_evaluator.h"

namespace tessera::remat {
namespace {

/// Of one gap at the peak: the higher, the sooner it is chosen.
struct Offer {
  std::int32_t gap;
  double rank;
  GapChoice choice;
};

class PeakRelief {
 public:
  PeakRelief(const Graph& graph, const PlanRequest& request)
      : graph_(graph),
        request_(request),
        gaps_(graph),
        evaluator_(graph, request.link, request.budget) {
    Nanoseconds now = 0;
    for (OpId op = 0; op < graph.ops(); ++op) {
      clock_.push_back(now);
      now += graph.first_time(op);
    }
    clock_.insert(clock_.end(), 2, now);
  }

  /// Looks at no more than `most` plans.
  template <class MakeOffer>
  PlannedSchedule run(MakeOffer make_offer, int most) {
    PlannedSchedule planned;
    ByteCount least = -1;
    for (int round = 0; round < most; ++round) {
      StagePlan plan = gaps_.decode();
      const Evaluation cost = evaluator_.evaluate(plan);
      if (least < 0 || cost.peak < least) {
        least = cost.peak;
        planned.schedule = evaluator_.schedule();
      }
      if (cost.peak <= request_.budget) return planned;
      const auto& peaks = evaluator_.stage_peaks();
      const auto stage =
          static_cast<Stage>(std::max_element(peaks.begin(), peaks.end()) - peaks.begin());
      if (!relieve(stage, cost.peak - request_.budget, make_offer)) break;
    }
    planned.least_peak = least;
    planned.note = "stuck: nothing is left to take off the device at the peak";
    return planned;
  }

  Nanoseconds free_time(const Gap& gap) const {
    const Nanoseconds copy = request_.link->copy_time(graph_.size(gap.tensor));
    return clock_[gap.to] - copy - (clock_[gap.from + 1] + copy);
  }

  /// To run the producer before the end of the gap: with what is dropped then as well.
  Nanoseconds again_time(const Gap& gap, int depth = 0) const {
    const OpId maker = graph_.producer(gap.tensor);
    Nanoseconds sum = graph_.time(maker);
    if (depth > 32) return sum;
    for (const TensorId q : graph_.inputs(maker)) {
      const std::int32_t at = gaps_.gap_at(q, gap.to);
      const bool there = at >= 0 && gaps_.gaps()[at].choice == GapChoice::hold;
      if (!there)
        sum += again_time({.tensor = q, .from = graph_.producer(q), .to = gap.to}, depth + 1);
    }
    return sum;
  }

 private:
  template <class MakeOffer>
  bool relieve(Stage stage, ByteCount excess, MakeOffer make_offer) {
    std::vector<Offer> offers;
    std::int32_t dropped = -1;
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(gaps_.gaps().size()); ++k) {
      const Gap& gap = gaps_.gaps()[k];
      const bool covers = gap.from < stage && stage < gap.to && graph_.size(gap.tensor) > 0;
      if (covers && gap.choice == GapChoice::hold) {
        Offer offer = make_offer(*this, gap);
        offer.gap = k;
        offers.push_back(offer);
      }
      // A chain that makes the peak: its links end here or lie around it.
      const bool regenerated = gap.from < stage && stage <= gap.to && !gaps_.is_away(gap);
      if (regenerated && gap.choice == GapChoice::run_again && request_.link &&
          (dropped < 0 || graph_.size(gap.tensor) > graph_.size(gaps_.gaps()[dropped].tensor)))
        dropped = k;
    }
    std::stable_sort(offers.begin(), offers.end(),
                     [](const Offer& a, const Offer& b) { return a.rank > b.rank; });
    for (const Offer& offer : offers) {
      if (excess <= 0) break;
      gaps_.gaps()[offer.gap].choice = offer.choice;
      excess -= graph_.size(gaps_.gaps()[offer.gap].tensor);
    }
    if (!offers.empty()) return true;
    if (dropped < 0) return false;
    gaps_.gaps()[dropped].choice = GapChoice::swap;
    return true;
  }

  const Graph& graph_;
  const PlanRequest& request_;
  GapPlan gaps_;
  PlanEvaluator evaluator_;
  std::vector<Nanoseconds> clock_;
};

}  // namespace

PlannedSchedule BeladyPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  if (!request.link) {
    PlannedSchedule planned = NonePlanner().plan(graph, request);
    if (planned.least_peak) planned.note = "belady can only swap; give a link";
    return planned;
  }
  const auto farthest = [](const PeakRelief&, const Gap& gap) {
    return Offer{.gap = 0, .rank = static_cast<double>(gap.to), .choice = GapChoice::swap};
  };
  return PeakRelief(graph, request).run(farthest, std::numeric_limits<int>::max());
}

PlannedSchedule CapuchinPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  const auto freest = [&](const PeakRelief& relief, const Gap& gap) {
    const Nanoseconds free = request.link ? relief.free_time(gap) : -1;
    // Hidden copies come before everything that costs time.
    if (free > 0)
      return Offer{
          .gap = 0, .rank = 1e30 + static_cast<double>(free) * 1e12, .choice = GapChoice::swap};
    const Nanoseconds again = relief.again_time(gap);
    const bool swap =
        request.link && (-free < again || !graph.recomputable(graph.producer(gap.tensor)));
    const auto cost = static_cast<double>(std::max<Nanoseconds>(1, swap ? -free : again));
    return Offer{.gap = 0,
                 .rank = static_cast<double>(graph.size(gap.tensor)) / cost,
                 .choice = swap ? GapChoice::swap : GapChoice::run_again};
  };
  return PeakRelief(graph, request).run(freest, most_);
}

}  // namespace tessera::remat
