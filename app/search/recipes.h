#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "app/search/layout_bounds.h"
#include "app/search/layout_space.h"

namespace tessera {

/// The corner of `space` that large models are usually trained in: tensor groups within a node with
/// sequence parallelism, pipelines with as many chunks as there are, contexts where a rank still
/// has 4,096 tokens, experts over a quarter of a node or more, replicas that divide the optimizer,
/// micro-batches of one or two sequences. Where `space` has none of the usual values, its own.
LayoutSpace recipe_space(const Scenario& base, const LayoutSpace& space);

/// Layouts that divide the model in the same way over tensor, context and expert groups; the most
/// promising first. Where one turns out too large, the next one with less memory takes its place.
struct Recipe {
  struct Step {
    Layout layout;
    LayoutBound bound;
  };
  std::vector<Step> steps;
};

/// The `most` most promising ways to divide the model: those of the lowest bounds on step time,
/// of layouts whose bound on memory is not above `memory`.
std::vector<Recipe> chosen_recipes(const std::vector<Layout>& layouts, Bytes memory,
                                   std::size_t most,
                                   const std::function<LayoutBound(const Layout&)>& bound_of);

}  // namespace tessera
