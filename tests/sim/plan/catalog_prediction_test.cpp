#include <gtest/gtest.h>

#include "predictor/weights.h"
#include "sim/config/load.h"
#include "tests/predictor/gemm_table_comparison.h"

namespace tessera {
namespace {

TEST(CatalogPredictions, OfEveryGpuEqualTheTrainedFormulas) {
  const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  const PredictorWeights weights = load_weights(TESSERA_SOURCE_DIR "/predictor/weights/tessera.pb");
  const std::vector<GemmShape> shapes = random_gemm_shapes(2000, 3);
  const auto gpus = catalog.ids(CatalogKind::gpus);
  ASSERT_GT(gpus.size(), 20u);
  for (const std::string& id : gpus)
    EXPECT_LT(worst_gemm_table_difference(load_gpu(id, catalog), weights, shapes), 1e-7) << id;
}

}  // namespace
}  // namespace tessera
