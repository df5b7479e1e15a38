#include "app/search/recipes.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/app/search/search_fixture.h"

namespace tessera {
namespace {

LayoutSpace space_of(int gpus) {
  return LayoutSpace{.gpus = gpus};
}

TEST(Recipes, LieInTheSpace) {
  const Scenario base = small_scenario("training.sequence_length=1024");
  const LayoutSpace space = space_of(8);
  const std::vector<Layout> all = legal_layouts(base, space).legal;
  const std::vector<Layout> recipes = legal_layouts(base, recipe_space(base, space)).legal;
  EXPECT_GT(recipes.size(), 10U);
  EXPECT_LT(recipes.size(), all.size() / 5);
  for (const Layout& layout : recipes)
    EXPECT_TRUE(std::ranges::binary_search(all, layout)) << to_text(layout);
}

TEST(Recipes, TakeTheUsersValuesWhereNoneIsUsual) {
  const Scenario base = small_scenario("");
  LayoutSpace space = space_of(8);
  space.schedules = {PipelineSchedule::zb_h1};
  space.micro_batches = {2, 4};
  const LayoutSpace recipes = recipe_space(base, space);
  EXPECT_EQ(recipes.schedules, space.schedules);
  EXPECT_EQ(recipes.micro_batches, std::vector<std::int64_t>{2});
}

TEST(Recipes, LongSequencesAreShared) {
  const Scenario base = small_scenario("model=llama-3-8b training.sequence_length=32768");
  const LayoutSpace recipes = recipe_space(base, space_of(8));
  EXPECT_EQ(recipes.context, (std::vector<int>{1, 2, 4, 8}));
  const Scenario shorter = small_scenario("model=llama-3-8b training.sequence_length=4096");
  EXPECT_EQ(recipe_space(shorter, space_of(8)).context, std::vector<int>{1});
}

TEST(Recipes, EachDividesTheModelInItsOwnWay) {
  const Scenario base = small_scenario("");
  const LayoutList list = legal_layouts(base, recipe_space(base, space_of(8)));
  LayoutBounds bounds(base, test_weights());
  const auto bound_of = [&](const Layout& layout) { return bounds.quick(layout); };
  const auto recipes = chosen_recipes(list.legal, base.cluster.node.gpu.memory, 12, bound_of);
  ASSERT_GT(recipes.size(), 1U);
  std::set<std::array<int, 3>> seen;
  for (const Recipe& recipe : recipes) {
    const Layout& layout = recipe.steps.front().layout;
    EXPECT_TRUE(seen.insert({layout.tensor, layout.context, layout.expert}).second);
    EXPECT_TRUE(std::ranges::is_sorted(
        recipe.steps, {}, [](const Recipe::Step& step) { return step.bound.step_time; }));
  }
  EXPECT_EQ(chosen_recipes(list.legal, base.cluster.node.gpu.memory, 1, bound_of).size(), 1U);
  EXPECT_TRUE(chosen_recipes(list.legal, Bytes(1), 12, bound_of).empty());
}

/// A search that ends behind its recipes, against as many layouts in the order of the list.
TEST(Recipes, NeverLoseToTheFirstThatAreEnumerated) {
  constexpr std::size_t kMost = 12;
  for (const char* settings :
       {"training.sequence_length=1024 training.global_batch=16",
        "cluster=dgx-a100 training.global_batch=16",
        "model=llama-3-8b model.layers=8 cluster=dgx-h100-x2 training.sequence_length=8192",
        "model=mixtral-8x7b model.layers=4 training.sequence_length=1024"}) {
    const Scenario base = small_scenario(settings);
    const LayoutSpace space = space_of(8);
    const SearchResult found =
        search_layouts(base, space, test_weights(), {.top = 1, .jobs = 2, .simulations = kMost});
    ASSERT_FALSE(found.fitting.empty()) << settings;
    std::vector<Layout> first = legal_layouts(base, space).legal;
    first.resize(kMost);
    for (const LayoutResult& other : simulated_each(base, first)) {
      if (!other.fits) continue;
      EXPECT_LE(found.fitting.front().step_time, other.step_time)
          << settings << ": " << to_text(other.layout);
    }
  }
}

}  // namespace
}  // namespace tessera
