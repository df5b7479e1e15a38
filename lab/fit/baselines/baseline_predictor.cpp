#include "lab/fit/baselines/baseline_predictor.h"

#include "hw/units/input_error.h"

namespace tessera {

KernelPrediction BaselinePredictor::predict(const Kernel& kernel) const {
  const bool unlike = kernel.kind == KernelKind::convolution ||
                      kernel.kind == KernelKind::attention ||
                      kernel.kind == KernelKind::grouped_gemm;
  if (unlike || kernel.precision != Precision::fp32)
    throw InputError({"baselines", "know nothing like a kernel of this step",
                      "they are trained on fp32 kernels of language models"});
  KernelPrediction prediction;
  prediction.duration = Seconds(seconds_(kernel));
  return prediction;
}

}  // namespace tessera
