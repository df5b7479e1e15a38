#include "app/search/search_layouts.h"

#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "app/search/layout_bounds.h"
#include "hw/units/input_error.h"
#include "tests/app/search/search_fixture.h"
#include "tests/app/search/small_spaces.h"

namespace tessera {
namespace {

/// Without what does not fit, and without plans of layouts that fit as they are.
std::vector<LayoutResult> fastest(std::vector<LayoutResult> results, std::size_t top) {
  std::set<Layout> fitting;
  for (const LayoutResult& result : results)
    if (result.fits) fitting.insert(result.layout);
  std::erase_if(results, [&](const LayoutResult& result) {
    Layout plain = result.layout;
    plain.planned = false;
    return !result.fits || (result.layout.planned && fitting.contains(plain));
  });
  std::ranges::sort(results, {}, [](const LayoutResult& result) {
    return std::pair(result.step_time, result.layout);
  });
  results.resize(std::min(top, results.size()));
  return results;
}

/// Each bound is at least the one before it, and none is above what the simulation says.
void expect_bounds_hold(LayoutBounds& bounds, const LayoutResult& simulated) {
  const LayoutBound quick = bounds.quick(simulated.layout);
  const LayoutBound refined = bounds.refined(simulated.layout);
  const Seconds walked = bounds.walked(simulated.layout, refined);
  const std::string name = to_text(simulated.layout);
  EXPECT_LE(quick.step_time, refined.step_time) << name;
  EXPECT_LE(refined.step_time, walked) << name;
  if (simulated.fits || !simulated.layout.planned) {
    EXPECT_LE(refined.step_time, simulated.step_time) << name;
    EXPECT_LE(walked, simulated.step_time) << name;
    EXPECT_LE(bounds.piped(simulated.layout, {walked, {}}), simulated.step_time) << name;
  }
  EXPECT_LE(quick.memory, refined.memory) << name;
  EXPECT_LE(refined.memory, simulated.memory.total()) << name;
}

class SmallSearch : public testing::TestWithParam<SmallSpace> {};

/// Neither bound is above what the simulation says, and the search finds what enumerating finds.
TEST_P(SmallSearch, EqualsExhaustiveEnumeration) {
  constexpr std::size_t kTop = 3;
  const Scenario base = small_scenario(GetParam().settings);
  const LayoutList list = legal_layouts(base, GetParam().space);
  ASSERT_GT(list.legal.size(), 3U);
  const std::vector<LayoutResult> all = simulated_each(base, list.legal);

  LayoutBounds bounds(base, test_weights());
  for (const LayoutResult& simulated : all) expect_bounds_hold(bounds, simulated);

  const SearchResult found =
      search_layouts(base, GetParam().space, test_weights(), {.top = kTop, .jobs = 2});
  const std::vector<LayoutResult> expected = fastest(all, kTop);
  ASSERT_GE(found.fitting.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found.fitting[i].layout, expected[i].layout) << to_text(expected[i].layout);
    EXPECT_EQ(found.fitting[i].step_time, expected[i].step_time);
  }
  EXPECT_TRUE(found.proven());
  EXPECT_EQ(found.counts.failed, 0) << found.failure;
  const bool any_planned =
      std::ranges::any_of(expected, [](const auto& result) { return result.layout.planned; });
  EXPECT_EQ(any_planned, GetParam().space.plans) << "plans are among the best of these spaces";
}

INSTANTIATE_TEST_SUITE_P(Spaces, SmallSearch, testing::ValuesIn(small_spaces()),
                         [](const auto& of) { return std::to_string(of.index); });

TEST(SearchLayouts, APlanThatIsNotNeededChangesNothing) {
  const Scenario base = small_scenario("");
  Layout layout{.pipeline = 2, .data = 2};
  const LayoutResult plain = simulated_each(base, {layout}).front();
  layout.planned = true;
  const LayoutResult planned = simulated_each(base, {layout}).front();
  EXPECT_EQ(planned.step_time, plain.step_time);
  EXPECT_EQ(planned.peak_memory, plain.peak_memory);
}

TEST(SearchLayouts, PlansMakeFitWhatIsTooLargeWithoutThem) {
  const Scenario base = small_scenario(
      "cluster.node.gpu.memory=4423MiB training.sequence_length=1024 training.global_batch=16");
  LayoutSpace space{.gpus = 2};
  space.tensor = {1};
  space.recompute = {Recompute::none};
  space.micro_batches = {4, 8};
  const SearchOptions options{.top = 1, .jobs = 2};
  const SearchResult none = search_layouts(base, space, test_weights(), options);
  EXPECT_TRUE(none.fitting.empty());
  ASSERT_TRUE(none.smallest_too_large);
  EXPECT_GT(none.smallest_too_large->memory, base.cluster.node.gpu.memory);
  for (const LayoutResult& each : simulated_each(base, legal_layouts(base, space).legal))
    EXPECT_LE(none.smallest_too_large->memory, each.memory.total()) << to_text(each.layout);
  space.plans = true;
  const SearchResult found = search_layouts(base, space, test_weights(), options);
  ASSERT_FALSE(found.fitting.empty());
  EXPECT_TRUE(found.fitting.front().layout.planned);
  EXPECT_LE(found.fitting.front().memory.total(), base.cluster.node.gpu.memory);
  EXPECT_TRUE(found.proven());
}

TEST(SearchLayouts, EveryLayoutThatIsTooLargeIsTriedWithAPlan) {
  const Scenario base = small_scenario(
      "cluster.node.gpu.memory=3623MiB training.sequence_length=1024 training.global_batch=16");
  LayoutSpace space{.gpus = 2};
  space.tensor = {1};
  space.recompute = {Recompute::none};
  space.micro_batches = {4, 8};
  space.plans = true;
  const SearchCounts counts =
      search_layouts(base, space, test_weights(), {.top = 1, .jobs = 2}).counts;
  EXPECT_EQ(counts.pruned, 0) << "none fits, so no bound prunes";
  EXPECT_EQ(counts.invalid + counts.too_large, counts.tried);
}

TEST(SearchLayouts, BoundsSpareMostSimulations) {
  const Scenario base = small_scenario("model.layers=8 training.global_batch=16");
  LayoutSpace space{.gpus = 8};
  space.context = {1};
  const SearchResult found = search_layouts(base, space, test_weights(), {.top = 1, .jobs = 2});
  EXPECT_LT(found.counts.simulated, found.counts.tried / 5);
  EXPECT_TRUE(found.proven());
}

TEST(SearchLayouts, SaysWhenTheTimeWasOverBeforeAllHadABound) {
  const Scenario base = small_scenario("");
  const SearchResult found =
      search_layouts(base, {.gpus = 4}, test_weights(),
                     {.top = 1, .jobs = 1, .limit = std::chrono::duration<double>(0)});
  EXPECT_FALSE(found.proven());
  EXPECT_EQ(found.end, SearchEnd::out_of_time);
  EXPECT_EQ(found.open_bound, Seconds(0));
}

/// Every layout with a bound, after so many simulations.
SearchResult after(std::int64_t simulations, std::size_t recipes = 12) {
  LayoutSpace space{.gpus = 8};
  space.recompute = {Recompute::none};
  return search_layouts(small_scenario("model.layers=8 training.global_batch=16"), space,
                        test_weights(),
                        {.top = 3, .jobs = 1, .simulations = simulations, .recipes = recipes});
}

TEST(SearchLayouts, SaysWhatTheTimeLimitLeft) {
  const SearchResult found = after(16);
  EXPECT_FALSE(found.proven());
  EXPECT_EQ(found.counts.simulated, 16);
  EXPECT_GT(found.counts.left, 10);
  ASSERT_TRUE(found.open_bound);
  EXPECT_GT(*found.open_bound, Seconds(0));
  const SearchResult all = after(1'000'000);
  EXPECT_TRUE(all.proven());
  EXPECT_EQ(all.end, SearchEnd::complete);
  EXPECT_LE(*found.open_bound, all.fitting[2].step_time);
}

TEST(SearchLayouts, MoreTimeNeverMakesTheBestWorse) {
  Seconds before(std::numeric_limits<double>::infinity()), bound(0);
  for (const std::int64_t simulations : {1, 2, 5, 12, 20, 40, 1000}) {
    const SearchResult found = after(simulations);
    ASSERT_FALSE(found.fitting.empty());
    EXPECT_LE(found.fitting.front().step_time, before) << simulations;
    before = found.fitting.front().step_time;
    if (!found.open_bound) continue;
    EXPECT_GE(*found.open_bound, bound) << simulations;
    bound = *found.open_bound;
  }
}

TEST(SearchLayouts, RecipesChangeNothingOfWhatIsProven) {
  const SearchResult with = after(1'000'000), without = after(1'000'000, 0);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(with.fitting[i].layout, without.fitting[i].layout);
}

TEST(SearchLayouts, AnInterruptedSearchKeepsWhatItFound) {
  const Scenario base = small_scenario("model.layers=8 training.global_batch=16");
  std::int64_t simulated = 0;
  SearchOptions options{.top = 3, .jobs = 2};
  options.progress = [&](const SearchResult& found) { simulated = found.counts.simulated; };
  options.interrupted = [&] { return simulated >= 3; };
  const SearchResult found = search_layouts(base, {.gpus = 8}, test_weights(), options);
  EXPECT_EQ(found.end, SearchEnd::interrupted);
  EXPECT_FALSE(found.proven());
  EXPECT_FALSE(found.fitting.empty());
  EXPECT_GT(found.counts.left, 0);
}

TEST(SearchLayouts, RefusesWhatBelongsToOneLayout) {
  const Scenario base = small_scenario("parallelism.placement=[1]");
  EXPECT_THROW(LayoutBounds(base, test_weights()), InputError);
}

}  // namespace
}  // namespace tessera
