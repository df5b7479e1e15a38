#include "app/search/recipes.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace tessera {
namespace {

constexpr std::int64_t kTokensPerRank = 4096;  ///< that a recipe leaves a context-parallel rank

/// What both hold; all that is wanted where the recipes have none of it.
template <class Value>
std::vector<Value> usual(const std::vector<Value>& wanted, std::vector<Value> recipes) {
  if (wanted.empty()) return recipes;
  std::erase_if(recipes, [&](const Value& value) {
    return std::ranges::find(wanted, value) == wanted.end();
  });
  return recipes.empty() ? wanted : recipes;
}

std::vector<int> divisors_between(std::int64_t whole, std::int64_t least, std::int64_t most) {
  std::vector<int> found;
  for (std::int64_t part = std::max<std::int64_t>(1, least); part <= std::min(whole, most); ++part)
    if (whole % part == 0) found.push_back(static_cast<int>(part));
  return found;
}

std::vector<int> context_sizes(const StepOptions& step) {
  std::vector<int> sizes = {1};
  while (step.sequence_length / (2 * sizes.back()) >= kTokensPerRank)
    sizes.push_back(2 * sizes.back());
  return sizes;
}

std::vector<int> expert_sizes(const Scenario& base, int gpus) {
  const std::int64_t experts = base.model.experts;
  if (experts <= 0) return {1};
  const std::int64_t least = std::min<std::int64_t>(experts, base.cluster.node.gpu_count / 4);
  const std::vector<int> sizes = divisors_between(experts, least, gpus);
  return sizes.empty() ? std::vector<int>{1} : sizes;
}

}  // namespace

LayoutSpace recipe_space(const Scenario& base, const LayoutSpace& space) {
  using enum PipelineSchedule;
  const int node = base.cluster.node.gpu_count;
  const int gpus = space.gpus > 0 ? space.gpus : base.cluster.gpu_count();
  LayoutSpace recipes = space;
  recipes.tensor = usual(space.tensor, divisors_between(node, 1, node));
  recipes.context = usual(space.context, context_sizes(base.step));
  recipes.expert = usual(space.expert, expert_sizes(base, gpus));
  recipes.sequence_parallel = usual(space.sequence_parallel, {true});
  recipes.sharding = usual(space.sharding, {Sharding::optimizer});
  recipes.schedules = usual(space.schedules, {one_f_one_b, interleaved_1f1b});
  recipes.micro_batches = usual<std::int64_t>(space.micro_batches, {1, 2});
  recipes.plans = false;
  return recipes;
}

std::vector<Recipe> chosen_recipes(const std::vector<Layout>& layouts, Bytes memory,
                                   std::size_t most,
                                   const std::function<LayoutBound(const Layout&)>& bound_of) {
  std::map<std::array<int, 3>, Recipe> by_division;
  for (const Layout& layout : layouts) {
    const LayoutBound bound = bound_of(layout);
    if (bound.memory <= memory)
      by_division[{layout.tensor, layout.context, layout.expert}].steps.push_back({layout, bound});
  }
  const auto order = [](const Recipe::Step& step) {
    return std::tuple(step.bound.step_time, step.bound.memory, step.layout);
  };
  std::vector<Recipe> recipes;
  for (auto& [division, recipe] : by_division) {
    std::ranges::sort(recipe.steps, {}, order);
    recipes.push_back(std::move(recipe));
  }
  std::ranges::sort(recipes, {}, [&](const Recipe& recipe) { return order(recipe.steps.front()); });
  if (recipes.size() > most) recipes.resize(most);
  return recipes;
}

}  // namespace tessera
