#include "app/search/layout_space.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/app/search/search_fixture.h"

namespace tessera {
namespace {

TEST(LayoutSpace, EveryLayoutLoadsAsAScenario) {
  const std::string rest = "training.global_batch=4";
  const Scenario base = small_scenario(rest);
  LayoutSpace space;
  space.gpus = 4;
  space.context = {1, 2, 4};
  space.plans = true;
  const LayoutList list = legal_layouts(base, space);
  EXPECT_TRUE(std::ranges::any_of(list.legal, &Layout::planned));
  EXPECT_GT(list.legal.size(), 100U);
  EXPECT_EQ(list.tried, static_cast<std::int64_t>(list.legal.size()) + list.invalid);
  for (std::size_t i = 0; i < list.legal.size(); i += 7) {
    const Scenario loaded = small_scenario(rest + " " + to_settings(list.legal[i]));
    EXPECT_EQ(identifying_bytes(loaded), identifying_bytes(laid_out(base, list.legal[i])))
        << to_text(list.legal[i]);
    EXPECT_EQ(list.legal[i].gpus(), 4);
  }
}

/// Whether another layout says the same: what has no effect is off in `layout_space.h`'s list.
bool has_idle_choice(const Layout& layout) {
  const bool alone = layout.data * layout.context == 1;
  return (layout.tensor == 1 && layout.sequence_parallel) ||
         (alone && layout.sharding != Sharding::none) ||
         (layout.pipeline == 1 && layout.schedule != PipelineSchedule::one_f_one_b) ||
         (layout.pipeline == 1 && layout.ends_as_layers);
}

/// What frameworks of several kinds can share over four GPUs.
class FrameworkSpace : public testing::TestWithParam<std::string> {};

TEST_P(FrameworkSpace, HasEveryLegalLayout) {
  const Scenario base = small_scenario(GetParam() + " training.global_batch=4");
  // torchtitan shards by FSDP, which has SHARD_GRAD_OP for ZeRO-2 and nothing like ZeRO-1.
  const bool fully_sharded = base.step.framework.name == "torchtitan";
  LayoutSpace space;
  space.gpus = 4;
  space.context = {1, 2, 4};
  space.recompute = {Recompute::none};
  std::vector<Layout> expected;
  for (int code = 0; code < 4 * 4 * 4 * 4 * 4; ++code) {
    Layout layout{.tensor = code % 4 + 1,
                  .pipeline = code / 4 % 4 + 1,
                  .virtual_stages = code / 16 % 4 + 1,
                  .context = code / 64 % 4 + 1,
                  .micro_batch = code / 256 + 1};
    for (layout.data = 1; layout.data <= 4; ++layout.data) {
      if (layout.gpus() != 4) continue;
      for (int choice = 0; choice < 7 * 4 * 4; ++choice) {
        layout.schedule = static_cast<PipelineSchedule>(choice % 7);
        layout.sharding = static_cast<Sharding>(choice / 7 % 4);
        layout.sequence_parallel = choice / 28 % 2 == 1;
        if (fully_sharded && layout.sharding == Sharding::optimizer) continue;
        layout.gather_units = fully_sharded && layout.sharding == Sharding::gradients;
        layout.ends_as_layers = choice >= 56;
        if (!has_idle_choice(layout) && is_legal(laid_out(base, layout)))
          expected.push_back(layout);
      }
    }
  }
  std::ranges::sort(expected);
  EXPECT_EQ(legal_layouts(base, space).legal, expected);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, FrameworkSpace,
                         testing::Values("",
                                         "model=llama-3.2-1b model.layers=4 "
                                         "model.tied_embeddings=false "
                                         "training.framework=torchtitan",
                                         "training.framework=hf-eager"),
                         [](const auto& of) { return std::to_string(of.index); });

TEST(LayoutSpace, UnitsThatTheScenarioGathersAreGatheredWithDividedGradients) {
  LayoutSpace space{.gpus = 2};
  space.tensor = space.pipeline = {1};
  const auto gathered = [&](const std::string& settings) {
    const LayoutList list = legal_layouts(small_scenario(settings), space);
    return std::ranges::count_if(list.legal, &Layout::gather_units);
  };
  const std::string gathers =
      "training.data_parallel.sharding=gradients training.data_parallel.gather_units=true";
  // Micro-batches of 1, 2 and 4, each with three ways to recompute.
  EXPECT_EQ(gathered("training.framework=hf-eager " + gathers), 3 * 3);
  EXPECT_EQ(gathered("training.framework=hf-eager"), 0);
}

TEST(LayoutSpace, LayersThatDivideOnlyWithTheEndsAreTriedSo) {
  LayoutSpace space{.gpus = 4};
  space.pipeline = {4};
  const LayoutList even = legal_layouts(small_scenario("model.layers=8"), space);
  const LayoutList ends = legal_layouts(small_scenario("model.layers=6"), space);
  ASSERT_FALSE(even.legal.empty());
  ASSERT_FALSE(ends.legal.empty());
  EXPECT_TRUE(std::ranges::none_of(even.legal, &Layout::ends_as_layers));
  EXPECT_TRUE(std::ranges::all_of(ends.legal, &Layout::ends_as_layers));
  EXPECT_NE(to_settings(ends.legal.front()).find("parallelism.head_as_layer=true"),
            std::string::npos);
  const LayoutList given =
      legal_layouts(small_scenario("model.layers=7 parallelism.head_as_layer=true"), space);
  ASSERT_FALSE(given.legal.empty());
  EXPECT_TRUE(std::ranges::none_of(given.legal, &Layout::ends_as_layers));
}

TEST(LayoutSpace, WantedValuesRestrictIt) {
  LayoutSpace space;
  space.tensor = {2, 5};
  space.schedules = {PipelineSchedule::gpipe};
  const LayoutList list = legal_layouts(small_scenario(""), space);
  ASSERT_FALSE(list.legal.empty());
  for (const Layout& layout : list.legal) {
    EXPECT_EQ(layout.tensor, 2);
    EXPECT_TRUE(layout.pipeline == 1 || layout.schedule == PipelineSchedule::gpipe);
  }
}

}  // namespace
}  // namespace tessera
