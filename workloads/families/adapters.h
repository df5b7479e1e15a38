#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"
#include "workloads/step_options.h"

namespace tessera {

/// Low-rank adapters beside the linear layers of Hugging Face's modules, as peft puts them there.
class Adapters {
 public:
  explicit Adapters(const StepOptions& step)
      : rank_(step.lora_rank), targets_(step.lora_targets), modules_(step.lora_modules) {}

  /// `y`, what layer `name` makes of `x`, with what its adapter makes of `x` added: two products, a
  /// scaled copy and a sum; `y` itself where it has none. Factors have the step's precision, as
  /// with autocast_adapter_dtype=False, and nothing is dropped. Source: peft,
  /// tuners/lora/layer.py, Linear.forward (recalled).
  Tensor added(Tape& tape, const std::string& name, const Tensor& x, const Tensor& y) const;

 private:
  bool stand_beside(const std::string& name) const;

  std::int64_t rank_;
  LoraTargets targets_;
  std::vector<std::string> modules_;  ///< none: those of `targets_`
};

}  // namespace tessera
