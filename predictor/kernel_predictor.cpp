#include "predictor/kernel_predictor.h"

#include "hw/units/input_error.h"
#include "predictor/fp32/neusight.h"
#include "predictor/roofline.h"
#include "predictor/tessera_predictor.h"

namespace tessera {

std::unique_ptr<KernelPredictor> make_predictor(PredictorForm form, const GpuSpec& gpu,
                                                const PredictorWeights& weights, Load load) {
  switch (form) {
    case PredictorForm::roofline:
      return std::make_unique<RooflinePredictor>(gpu);
    case PredictorForm::neusight:
      return std::make_unique<NeusightPredictor>(gpu, weights);
    case PredictorForm::tessera:
      break;
  }
  if (!weights.trained())
    throw InputError({.where = "predictor.form",
                      .what = "the form tessera needs trained weights",
                      .hint = "train them (tessera train) or choose the form roofline"});
  return std::make_unique<TesseraPredictor>(gpu, weights, load);
}

}  // namespace tessera
