#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"
#include "workloads/step_options.h"

namespace tessera {

/// Low-rank adapters beside the linear layers of Hugging Face's modules, as peft puts them there.
class Adapters {
 public:
  explicit Adapters(const StepOptions& step) : rank_(step.lora_rank), targets_(step.lora_targets) {}

  /// `y`, what layer `name` makes of `x`, with what its adapter makes of `x` added: two products, a
  /// scaled copy and a sum; `y` itself where it has none. Factors have the step's precision, as
  /// with autocast_adapter_dtype=False, and nothing is dropped. Source: peft,
  /// tuners/lora/layer.py, Linear.forward (recalled).
  Tensor added(Tape& tape, const std::string& name, const Tensor& x, const Tensor& y) const;

 private:
  bool stand_beside(const std::string& name) const {
    return rank_ > 0 && (targets_ == LoraTargets::all || name.starts_with("attention."));
  }

  std::int64_t rank_;
  LoraTargets targets_;
};

}  // namespace tessera
