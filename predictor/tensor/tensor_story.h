#pragma once

#include "predictor/product_story.h"
#include "predictor/tensor/tensor_gemm_predictor.h"

namespace tessera {

/// How the compute time of a product on tensor cores comes about, with the formulas that were
/// trained: tiles, splits and the power-limited rate. Sizes of k in 16-bit steps. Of a grouped
/// product the tiles of all groups together.
ProductStory tensor_product_story(const Kernel& kernel, const TensorGemmPredictor& predictor);

}  // namespace tessera
