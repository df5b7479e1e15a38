#include "lab/fit/fp32/folds.h"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

#include "hw/units/parallel_for.h"
#include "lab/fit/fp32/parametric_fit.h"
#include "lab/fit/train.h"
#include "tests/predictor/synthetic_measurements.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

TrainingSet three_gpus(const ScratchFolder& folder) {
  folder.write("fp32.csv", kMeasurementHeader + synthetic_rows("V100-PCIe-32GB", 1.3, 1.3) +
                               synthetic_rows("A100-PCIe-40GB", 1.4, 1.4) +
                               synthetic_rows("P100-PCIe-16GB", 1.5, 1.5));
  return read_training_set(folder.path(), test_gpu);
}

std::vector<std::string> gpus_of(const PredictorWeights& weights) {
  std::vector<std::string> ids;
  for (const TrainedGpu& gpu : weights.gpus) ids.push_back(gpu.effect.gpu);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(Folds, LeaveOutNobodyEveryOneAndEveryPair) {
  const ScratchFolder folder;
  const TrainingSet set = three_gpus(folder);
  const Folds folds(set.gpus, FoldDepth::two);
  EXPECT_EQ(gpus_of(folds.all()), (Ids{"V100-PCIe-32GB", "A100-PCIe-40GB", "P100-PCIe-16GB"}));
  EXPECT_EQ(gpus_of(folds.without(1)), (Ids{"V100-PCIe-32GB", "P100-PCIe-16GB"}));
  EXPECT_EQ(gpus_of(folds.without(0, 1)), (Ids{"P100-PCIe-16GB"}));
  EXPECT_EQ(gpus_of(folds.without(2, 1)), (Ids{"V100-PCIe-32GB"}));
  EXPECT_EQ(&folds.without(1, 2), &folds.without(2, 1));
}

TEST(Folds, AreTheFitsOfTheRemainingGpus) {
  const ScratchFolder folder;
  const TrainingSet set = three_gpus(folder);
  const Folds folds(set.gpus, FoldDepth::one);
  const PredictorWeights alone = fit_parametric({&set.gpus[0], &set.gpus[2]});
  EXPECT_EQ(folds.without(1).gemm.shared.prologue, alone.gemm.shared.prologue);
  EXPECT_EQ(folds.without(1).gpus[1].effect.gemm_slowdown, alone.gpus[1].effect.gemm_slowdown);
}

TEST(Folds, NoDeeperThanAsked) {
  const ScratchFolder folder;
  const TrainingSet set = three_gpus(folder);
  EXPECT_FALSE(Folds(set.gpus, FoldDepth::one).without(0, 1).trained());
  EXPECT_FALSE(Folds(set.gpus, FoldDepth::none).without(0).trained());
}

TEST(Ingredients, ALeftOutOneHasNoEffectInTheFit) {
  const ScratchFolder folder;
  const TrainingSet set = three_gpus(folder);
  const std::vector<const GpuData*> gpus{&set.gpus[0], &set.gpus[1], &set.gpus[2]};
  const auto fitted = [&](LeftOutIngredient without) { return fit_parametric(gpus, without).gemm; };
  const GemmWeights one_tile = fitted(Ingredient::tile_menu);
  for (std::size_t tile = 1; tile < kGemmTiles.size(); ++tile)
    EXPECT_GT(one_tile.menus[0].penalty[tile], 30) << tile;  // e^30 times as slow: never chosen
  const GemmWeights one_menu = fitted(Ingredient::family_menus);
  for (std::size_t tile = 1; tile < kGemmTiles.size(); ++tile)
    EXPECT_NEAR(one_menu.menus[0].penalty[tile], one_menu.menus[2].penalty[tile], 1e-9);
  EXPECT_NE(fitted({}).menus[0].penalty, fitted({}).menus[2].penalty);
  EXPECT_LT(fitted(Ingredient::whole_waves).menus[1].quantisation, 1e-9);
  EXPECT_GT(fitted(Ingredient::split_k).shared.split_seconds, 1e6);
  EXPECT_NEAR(fitted(Ingredient::alignment).shared.misaligned, 0, 1e-9);
  EXPECT_LT(fitted(Ingredient::row_distance).shared.stride, 1e-9);
}

TEST(ParallelFor, RunsEveryTaskOnce) {
  std::vector<std::atomic<int>> runs(1000);
  parallel_for(runs.size(), [&](std::size_t i) { ++runs[i]; });
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  parallel_for(0, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsWhatATaskThrew) {
  EXPECT_THROW(parallel_for(10,
                            [](std::size_t i) {
                              if (i == 3) throw std::runtime_error("three");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace tessera
