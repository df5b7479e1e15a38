#include "sim/search/search_layouts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/process/forked_pool.h"
#include "sim/search/layout_bounds.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

struct Candidate {
  Layout layout;
  Seconds bound;
};

class LayoutSearch {
 public:
  LayoutSearch(const Scenario& base, const PredictorWeights& weights, const SearchOptions& options)
      : base_(base),
        weights_(weights),
        options_(options),
        bounds_(base, weights),
        pool_(options.jobs, options.limit),
        start_(Clock::now()) {}

  SearchResult run(const LayoutSpace& space) && {
    const LayoutList list = legal_layouts(base_, space);
    result_.counts.tried = list.tried;
    result_.counts.invalid = list.invalid;
    std::vector<Candidate> candidates = fitting(list.legal);
    std::ranges::stable_sort(candidates, {}, &Candidate::bound);
    std::size_t next = 0;
    for (; next < candidates.size() && candidates[next].bound <= slowest_of_best(); ++next) {
      if (time_is_over()) break;
      start(next, candidates[next]);
      while (pool_.full()) collect(candidates);
      options_.progress(result_.counts);
    }
    while (!pool_.empty()) collect(candidates);
    finish(candidates, next);
    return std::move(result_);
  }

 private:
  /// Those that fit by the quick bound.
  std::vector<Candidate> fitting(const std::vector<Layout>& layouts) {
    std::vector<Candidate> candidates;
    for (const Layout& layout : layouts) {
      const LayoutBound bound = bounds_.quick(layout);
      if (bound.memory > base_.cluster.node.gpu.memory) {
        ++result_.counts.too_large;
      } else {
        candidates.push_back({layout, bound.step_time});
      }
    }
    return candidates;
  }

  /// Of the best found so far; without enough of them nothing is too slow.
  Seconds slowest_of_best() const {
    if (result_.fitting.size() < options_.top || options_.top == 0)
      return Seconds(std::numeric_limits<double>::infinity());
    return result_.fitting[options_.top - 1].step_time;
  }

  bool time_is_over() const { return Clock::now() - start_ > options_.limit; }

  /// The finer bounds are had in the child too, which simulates only what they leave.
  void start(std::size_t number, const Candidate& candidate) {
    pool_.start(number, [this, &candidate]() -> std::string {
      const LayoutBound bound = bounds_.refined(candidate.layout);
      if (bound.memory > base_.cluster.node.gpu.memory) return "memory";
      if (bound.step_time > slowest_of_best()) return "slow";
      return packed(simulate_layout(base_, candidate.layout, weights_));
    });
  }

  void collect(const std::vector<Candidate>& candidates) {
    for (const EndedCall& ended : pool_.wait()) {
      if (ended.how == EndedCall::How::failed) {
        ++result_.counts.failed;
        if (result_.failure.empty())
          result_.failure = to_text(candidates[ended.id].layout) + ": " + ended.text;
      } else if (ended.how == EndedCall::How::timed_out) {
        ++result_.counts.left;
      } else if (ended.text == "memory") {
        ++result_.counts.too_large;
      } else if (ended.text == "slow") {
        ++result_.counts.pruned;
      } else {
        take(unpacked(ended.text, candidates[ended.id].layout));
      }
    }
  }

  void take(LayoutResult simulated) {
    ++result_.counts.simulated;
    if (!simulated.fits) {
      ++result_.counts.too_large;
      return;
    }
    const auto earlier = [](const LayoutResult& a, const LayoutResult& b) {
      return std::pair(a.step_time, a.layout) < std::pair(b.step_time, b.layout);
    };
    const auto at = std::ranges::upper_bound(result_.fitting, simulated, earlier);
    result_.fitting.insert(at, std::move(simulated));
  }

  void finish(const std::vector<Candidate>& candidates, std::size_t next) {
    const Seconds slowest = slowest_of_best();
    for (; next < candidates.size(); ++next) {
      if (candidates[next].bound > slowest) break;
      if (result_.counts.left++ == 0) result_.bound_left = candidates[next].bound;
    }
    result_.counts.pruned += static_cast<std::int64_t>(candidates.size() - next);
    options_.progress(result_.counts);
  }

  const Scenario& base_;
  const PredictorWeights& weights_;
  const SearchOptions& options_;
  LayoutBounds bounds_;
  ForkedPool pool_;
  Clock::time_point start_;
  SearchResult result_;
};

}  // namespace

SearchResult search_layouts(const Scenario& base, const LayoutSpace& space,
                            const PredictorWeights& weights, const SearchOptions& options) {
  return LayoutSearch(base, weights, options).run(space);
}

}  // namespace tessera
