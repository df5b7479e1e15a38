#include "sim/search/search_layouts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "sim/process/forked_pool.h"
#include "sim/search/layout_bounds.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

/// Finer bounds are had so many at a time in a process of their own.
constexpr std::size_t kRefinedTogether = 8;

struct Candidate {
  Seconds bound;
  Layout layout;
  bool refined = false;
  bool operator>(const Candidate& other) const {
    return std::tie(bound, layout) > std::tie(other.bound, other.layout);
  }
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
    plans_ = space.plans;
    for (const Layout& layout : list.legal) {
      if (layout.planned)
        ++waiting_;
      else
        add({bounds_.quick(layout), layout, false});
    }
    while (true) {
      while (!pool_.full() && next() != nullptr && !time_is_over()) start();
      if (pool_.empty()) break;
      collect();
      options_.progress(result_.counts);
    }
    finish();
    return std::move(result_);
  }

 private:
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;
  struct Bounded {
    LayoutBound bound;
    Layout layout;
    bool refined = false;
  };

  void add(const Bounded& candidate) {
    if (candidate.bound.memory > base_.cluster.node.gpu.memory) {
      leave_out(candidate.layout);
    } else {
      queue_of(candidate.layout)
          .push({candidate.bound.step_time, candidate.layout, candidate.refined});
    }
  }

  /// Too large as it is: its turn comes with a plan. Where a layout fits, its plan does nothing.
  void leave_out(Layout layout) {
    ++result_.counts.too_large;
    if (!plans_ || layout.planned || !can_be_planned(layout)) return;
    layout.planned = true;
    --waiting_;
    add({bounds_.quick(layout), layout, false});
  }

  /// Of the best found so far; without enough of them nothing is too slow.
  Seconds slowest_of_best() const {
    if (result_.fitting.size() < options_.top || options_.top == 0)
      return Seconds(std::numeric_limits<double>::infinity());
    return result_.fitting[options_.top - 1].step_time;
  }

  Queue& queue_of(const Layout& layout) { return queues_[layout.planned ? 1 : 0]; }

  /// Of the queues with a layout that may be among the best, the first. Planned layouts wait for
  /// the others: a plan takes seconds to make, and its bound knows nothing of what it costs.
  Queue* next() {
    const auto found = std::ranges::find_if(queues_, [&](const Queue& queue) {
      return !queue.empty() && queue.top().bound <= slowest_of_best();
    });
    return found == queues_.end() ? nullptr : &*found;
  }
  bool time_is_over() const { return Clock::now() - start_ > options_.limit; }

  /// Simulates the most promising layout, or finds finer bounds of the most promising ones.
  void start() {
    Queue& queue = *next();
    const bool simulates = queue.top().refined;
    std::vector<Layout> layouts;
    while (next() == &queue && queue.top().refined == simulates &&
           layouts.size() < (simulates ? 1 : kRefinedTogether)) {
      layouts.push_back(queue.top().layout);
      queue.pop();
    }
    const std::size_t number = started_++;
    pool_.start(number, [&] {
      return simulates ? packed(simulate_layout(base_, layouts[0], weights_)) : refined(layouts);
    });
    running_.emplace(number, Job{simulates, std::move(layouts)});
  }

  /// A line for each: step time and memory, as a hexadecimal and a whole number.
  std::string refined(const std::vector<Layout>& layouts) {
    std::string text;
    for (const Layout& layout : layouts) {
      const LayoutBound bound = bounds_.refined(layout);
      char line[96];
      std::snprintf(line, sizeof(line), "%a %lld\n", bound.step_time.value(),
                    static_cast<long long>(bound.memory.value()));
      text += line;
    }
    return text;
  }

  void collect() {
    for (const EndedCall& ended : pool_.wait()) {
      const Job job = std::move(running_.extract(ended.id).mapped());
      const auto count = static_cast<std::int64_t>(job.layouts.size());
      if (ended.how == EndedCall::How::failed) {
        result_.counts.failed += count;
        if (result_.failure.empty())
          result_.failure = to_text(job.layouts.front()) + ": " + ended.text;
      } else if (ended.how == EndedCall::How::timed_out) {
        result_.counts.left += count;
      } else if (job.simulates) {
        take(unpacked(ended.text, job.layouts.front()));
      } else {
        take_bounds(ended.text, job.layouts);
      }
    }
  }

  void take_bounds(const std::string& text, const std::vector<Layout>& layouts) {
    const char* at = text.c_str();
    for (const Layout& layout : layouts) {
      char* end = nullptr;
      const Seconds time(std::strtod(at, &end));
      const Bytes memory(std::strtoll(end, &end, 10));
      at = end;
      add({{time, memory}, layout, true});
    }
  }

  void take(LayoutResult simulated) {
    ++result_.counts.simulated;
    if (!simulated.fits) {
      leave_out(simulated.layout);
      return;
    }
    const auto earlier = [](const LayoutResult& a, const LayoutResult& b) {
      return std::pair(a.step_time, a.layout) < std::pair(b.step_time, b.layout);
    };
    const auto at = std::ranges::upper_bound(result_.fitting, simulated, earlier);
    result_.fitting.insert(at, std::move(simulated));
  }

  void finish() {
    result_.counts.pruned = waiting_;
    for (Queue& queue : queues_) {
      const bool is_open = !queue.empty() && queue.top().bound <= slowest_of_best();
      if (is_open && (result_.bound_left == Seconds(0) || queue.top().bound < result_.bound_left))
        result_.bound_left = queue.top().bound;
      for (; !queue.empty() && queue.top().bound <= slowest_of_best(); queue.pop())
        ++result_.counts.left;
      result_.counts.pruned += static_cast<std::int64_t>(queue.size());
    }
  }

  /// What a process of the pool is at.
  struct Job {
    bool simulates = false;
    std::vector<Layout> layouts;
  };

  const Scenario& base_;
  const PredictorWeights& weights_;
  const SearchOptions& options_;
  LayoutBounds bounds_;
  ForkedPool pool_;
  std::array<Queue, 2> queues_;         ///< without plans, with plans
  std::map<std::size_t, Job> running_;  ///< by number
  std::size_t started_ = 0;
  bool plans_ = false;
  std::int64_t waiting_ = 0;  ///< planned layouts that nobody asked for yet
  Clock::time_point start_;
  SearchResult result_;
};

}  // namespace

SearchResult search_layouts(const Scenario& base, const LayoutSpace& space,
                            const PredictorWeights& weights, const SearchOptions& options) {
  return LayoutSearch(base, weights, options).run(space);
}

}  // namespace tessera
