#include "app/search/search_layouts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "app/search/layout_answers.h"
#include "app/search/layout_bounds.h"
#include "app/search/open_layouts.h"
#include "app/search/recipes.h"
#include "sim/process/forked_pool.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

/// Finer bounds are had so many at a time in a process of their own.
constexpr std::size_t kBoundsTogether = 8;
/// Likewise the costs of layers.
constexpr std::size_t kLayersTogether = 32;
/// The longest wait between two looks at the clock.
constexpr std::chrono::duration<double> kPatience(0.05);

/// What a process of the pool is at.
struct Job {
  bool simulates = false;
  std::vector<Candidate> candidates;  ///< empty: it measures layers
  std::vector<Layout> layers;
};

class LayoutSearch {
 public:
  LayoutSearch(const Scenario& base, const PredictorWeights& weights, const SearchOptions& options)
      : base_(base),
        weights_(weights),
        options_(options),
        bounds_(base, weights),
        pool_(options.jobs, std::chrono::duration<double>(1e9)),
        start_(Clock::now()) {}

  SearchResult run(const LayoutSpace& space) && {
    plans_ = space.plans;
    if (base_.step.framework.modules == ModuleTree::megatron && options_.recipes > 0)
      find_recipes(recipe_space(base_, space));
    const LayoutList list = legal_layouts(base_, space, [&] {
      pump(std::chrono::duration<double>(0));
      return stopped();
    });
    result_.counts.tried = list.tried;
    result_.counts.invalid = list.invalid;
    all_bounded_ = list.complete && measure(list.legal);
    if (all_bounded_) add_all(list.legal);
    while (!stopped() && (open_.has_any(slowest_of_best()) || !pool_.empty())) pump(kPatience);
    finish(static_cast<std::int64_t>(list.legal.size()));
    return std::move(result_);
  }

 private:
  void find_recipes(const LayoutSpace& space) {
    const LayoutList list = legal_layouts(base_, space, [&] { return stopped(); });
    if (!list.complete || !measure(list.legal)) return;
    recipes_ = chosen_recipes(list.legal, capacity(), options_.recipes,
                              [&](const Layout& layout) { return bounds_.quick(layout); });
    for (std::size_t recipe = 0; recipe < recipes_.size(); ++recipe) try_recipe(recipe, 0);
  }

  void try_recipe(std::size_t recipe, std::size_t at) {
    const Recipe::Step& step = recipes_[recipe].steps[at];
    open_.add_recipe({step.bound, step.layout});
    begun_.emplace(step.layout, std::pair(recipe, at));
  }

  /// A recipe turned out too large: the next one of its kind that may need less.
  void go_on_with_recipe(const Layout& too_large) {
    const auto found = begun_.find(too_large);
    if (all_bounded_ || found == begun_.end()) return;
    const auto [recipe, at] = found->second;
    const std::vector<Recipe::Step>& steps = recipes_[recipe].steps;
    for (std::size_t next = at + 1; next < steps.size(); ++next)
      if (steps[next].bound.memory < steps[at].bound.memory) return try_recipe(recipe, next);
  }

  /// Costs of layers for quick bounds of `layouts`, in processes beside the recipes; false where
  /// the search was stopped first.
  bool measure(const std::vector<Layout>& layouts) {
    unmeasured_ = bounds_.unmeasured(layouts);
    std::ranges::reverse(unmeasured_);
    while (!stopped() && (!unmeasured_.empty() || measuring_ > 0)) pump(kPatience);
    return unmeasured_.empty() && measuring_ == 0;
  }

  void add_all(const std::vector<Layout>& layouts) {
    for (const Layout& layout : layouts) {
      if (layout.planned)
        ++waiting_;
      else if (!begun_.contains(layout))
        add({bounds_.quick(layout), layout});
    }
  }

  /// Under a limit at run time tensors leave, of which bounds know nothing.
  Bytes capacity() const {
    const bool bounded = base_.memory.limit <= Bytes(0);
    return bounded ? base_.cluster.node.gpu.memory
                   : Bytes(std::numeric_limits<std::int64_t>::max());
  }

  void add(const Candidate& candidate) {
    if (candidate.bound.memory > capacity())
      leave_out(candidate.layout, candidate.bound.memory);
    else
      open_.add(candidate);
  }

  /// Too large as it is: its turn comes with a plan. Where a layout fits, its plan does nothing.
  void leave_out(Layout layout, Bytes memory) {
    ++result_.counts.too_large;
    std::optional<TooLarge>& smallest = result_.smallest_too_large;
    if (!smallest || std::pair(memory, layout) < std::pair(smallest->memory, smallest->layout))
      smallest = {.layout = layout, .memory = memory};
    if (!plans_ || layout.planned || !can_be_planned(layout)) return;
    layout.planned = true;
    --waiting_;
    add({bounds_.quick(layout), layout});
  }

  /// Of the best found so far; without enough of them nothing is too slow.
  Seconds slowest_of_best() const {
    if (result_.fitting.size() < options_.top || options_.top == 0)
      return Seconds(std::numeric_limits<double>::infinity());
    return result_.fitting[options_.top - 1].step_time;
  }

  bool stopped() {
    if (result_.end != SearchEnd::complete) return true;
    if (options_.interrupted())
      result_.end = SearchEnd::interrupted;
    else if (Clock::now() - start_ > options_.limit ||
             result_.counts.simulated >= options_.simulations)
      result_.end = SearchEnd::out_of_time;
    return result_.end != SearchEnd::complete;
  }

  /// Starts what there is room for, and takes in what ends within `patience`.
  void pump(std::chrono::duration<double> patience) {
    while (!pool_.full() && !stopped() && start()) {
    }
    if (pool_.empty()) return;
    for (const EndedCall& ended : pool_.wait(patience)) collect(ended);
    result_.open_bound = open_bound();
    options_.progress(result_);
  }

  /// The most promising work that there is; false: none.
  bool start() {
    Job job{.candidates = all_bounded_ ? open_.take(slowest_of_best(), kBoundsTogether)
                                       : open_.take_recipe(slowest_of_best())};
    if (job.candidates.empty() && unmeasured_.empty()) return false;
    job.simulates = !job.candidates.empty() && job.candidates.front().is_finest();
    while (job.candidates.empty() && !unmeasured_.empty() && job.layers.size() < kLayersTogether) {
      job.layers.push_back(unmeasured_.back());
      unmeasured_.pop_back();
    }
    measuring_ += job.candidates.empty() ? 1 : 0;
    const std::size_t number = started_++;
    pool_.start(number, [&] { return result_of(job); });
    running_.emplace(number, std::move(job));
    return true;
  }

  /// In a process of its own.
  std::string result_of(const Job& job) {
    if (job.candidates.empty()) return packed(bounds_.measured(job.layers));
    if (job.simulates)
      return packed(simulate_layout(base_, job.candidates.front().layout, weights_));
    std::vector<LayoutBound> bounds;
    for (const Candidate& candidate : job.candidates) bounds.push_back(finer_bound(candidate));
    return packed(bounds);
  }

  LayoutBound finer_bound(const Candidate& of) {
    LayoutBound bound = of.bound;
    if (of.level == BoundLevel::quick) return bounds_.refined(of.layout);
    bound.step_time = of.level == BoundLevel::refined ? bounds_.walked(of.layout, bound)
                                                      : bounds_.piped(of.layout, bound);
    return bound;
  }

  void collect(const EndedCall& ended) {
    Job job = std::move(running_.extract(ended.id).mapped());
    if (job.candidates.empty()) {
      --measuring_;
      // What failed is measured once more by quick(), which says why.
      if (ended.how == EndedCall::How::returned)
        bounds_.learn(job.layers, unpacked<std::vector<LayerCosts>>(ended.text));
    } else if (ended.how != EndedCall::How::returned) {
      note_failure(job, ended.text);
    } else if (job.simulates) {
      auto result = unpacked<LayoutResult>(ended.text);
      result.layout = job.candidates.front().layout;
      take(std::move(result));
    } else {
      const auto bounds = unpacked<std::vector<LayoutBound>>(ended.text);
      for (std::size_t i = 0; i < bounds.size(); ++i) take_bound(job.candidates[i], bounds[i]);
    }
  }

  /// Until all have a quick bound recipes alone get finer ones: of memory, ahead of simulating.
  void take_bound(const Candidate& of, const LayoutBound& bound) {
    if (all_bounded_) return add({bound, of.layout, finer(of)});
    if (bound.memory <= capacity()) return open_.add_recipe({bound, of.layout, BoundLevel::walked});
    leave_out(of.layout, bound.memory);
    go_on_with_recipe(of.layout);
  }

  static BoundLevel finer(const Candidate& candidate) {
    return static_cast<BoundLevel>(static_cast<int>(candidate.level) + 1);
  }

  void note_failure(const Job& job, const std::string& text) {
    result_.counts.failed += static_cast<std::int64_t>(job.candidates.size());
    for (const Candidate& candidate : job.candidates)
      failed_bound_ = std::min(failed_bound_, candidate.bound.step_time);
    if (result_.failure.empty())
      result_.failure = to_text(job.candidates.front().layout) + ": " + text;
  }

  void take(LayoutResult simulated) {
    ++result_.counts.simulated;
    if (!simulated.fits) {
      leave_out(simulated.layout, simulated.memory.total());
      return go_on_with_recipe(simulated.layout);
    }
    const auto earlier = [](const LayoutResult& a, const LayoutResult& b) {
      return std::pair(a.step_time, a.layout) < std::pair(b.step_time, b.layout);
    };
    const auto at = std::ranges::upper_bound(result_.fitting, simulated, earlier);
    result_.fitting.insert(at, std::move(simulated));
  }

  std::optional<Seconds> open_bound() const {
    if (!all_bounded_) return Seconds(0);
    const Seconds slowest = slowest_of_best();
    Seconds lowest = open_.lowest_bound(slowest).value_or(failed_bound_);
    lowest = std::min(lowest, failed_bound_);
    for (const auto& [number, job] : running_)
      for (const Candidate& candidate : job.candidates)
        lowest = std::min(lowest, candidate.bound.step_time);
    const bool none = lowest > slowest || lowest.value() > std::numeric_limits<double>::max();
    return none ? std::nullopt : std::optional(lowest);
  }

  /// `legal`: how many layouts there are.
  void finish(std::int64_t legal) {
    for (const auto& [number, job] : running_)
      for (const Candidate& candidate : job.candidates) open_.add(candidate);
    running_.clear();
    const OpenLayouts::Split split = open_.split(slowest_of_best());
    SearchCounts& counts = result_.counts;
    counts.left = all_bounded_ ? split.open : legal - counts.simulated - counts.failed;
    counts.pruned = all_bounded_ ? waiting_ + split.slower : 0;
    result_.open_bound = open_bound();
    if (result_.proven()) result_.end = SearchEnd::complete;
  }

  const Scenario& base_;
  const PredictorWeights& weights_;
  const SearchOptions& options_;
  LayoutBounds bounds_;
  ForkedPool pool_;
  OpenLayouts open_;
  std::vector<Recipe> recipes_;
  std::map<Layout, std::pair<std::size_t, std::size_t>> begun_;  ///< recipe and step
  std::vector<Layout> unmeasured_;                               ///< the next one last
  int measuring_ = 0;                                            ///< jobs at it
  bool all_bounded_ = false;            ///< every layout has at least a quick bound
  std::map<std::size_t, Job> running_;  ///< by number
  std::size_t started_ = 0;
  bool plans_ = false;
  std::int64_t waiting_ = 0;  ///< planned layouts that nobody asked for yet
  Seconds failed_bound_{std::numeric_limits<double>::infinity()};  ///< the lowest
  Clock::time_point start_;
  SearchResult result_;
};

}  // namespace

std::size_t SearchResult::proven_layouts() const {
  if (proven()) return fitting.size();
  return static_cast<std::size_t>(std::ranges::count_if(
      fitting, [&](const LayoutResult& layout) { return layout.step_time <= *open_bound; }));
}

SearchResult search_layouts(const Scenario& base, const LayoutSpace& space,
                            const PredictorWeights& weights, const SearchOptions& options) {
  return LayoutSearch(base, weights, options).run(space);
}

}  // namespace tessera
