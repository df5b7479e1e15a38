#include "sim/scenario/names.h"

#include <string>

#include "hw/units/input_error.h"

namespace tessera {

std::string_view name_of(StepMode mode) {
  switch (mode) {
    case StepMode::training:
      return "training";
    case StepMode::forward_backward:
      return "forward_backward";
    case StepMode::inference:
      return "inference";
  }
  return "";
}

std::string_view name_of(PredictorForm form) {
  switch (form) {
    case PredictorForm::roofline:
      return "roofline";
    case PredictorForm::neusight:
      return "neusight";
    case PredictorForm::tessera:
      return "tessera";
  }
  return "";
}

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "";
}

PredictorForm predictor_form_of(std::string_view name) {
  for (const auto form :
       {PredictorForm::roofline, PredictorForm::neusight, PredictorForm::tessera}) {
    if (name_of(form) == name) return form;
  }
  throw InputError({"predictor form", "'" + std::string(name) + "' is unknown",
                    "use roofline, neusight or tessera"});
}

}  // namespace tessera
