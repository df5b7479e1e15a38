#include "predictor/gpu/effect_rule.h"

#include "hw/units/formatted.h"

namespace tessera {

std::string_view name_of(ComputeRule rule) {
  switch (rule) {
    case ComputeRule::median:
      return "median";
    case ComputeRule::predecessor:
      return "predecessor";
    case ComputeRule::physical:
      return "physical";
    case ComputeRule::pooled:
      break;
  }
  return "pooled";
}

std::string text_of(const EffectRule& rule) {
  return formatted("%s, %s, session pooling %.1f", std::string(name_of(rule.compute)).c_str(),
                   rule.power_limit ? "power limit" : "no power limit", rule.session_pooling);
}

}  // namespace tessera
