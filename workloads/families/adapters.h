#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"
#include "workloads/ops/matmul.h"
#include "workloads/step_options.h"

namespace tessera {

/// a / b, of which b is a constant to backward.
Tensor ratio(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);

/// Linear layers of Hugging Face's modules with the low-rank adapters that peft puts beside them.
/// Source: peft, tuners/lora/layer.py, Linear.forward, and tuners/lora/dora.py, DoraLinearLayer
/// (recalled).
class Adapters {
 public:
  explicit Adapters(const StepOptions& step)
      : rank_(step.lora_rank),
        targets_(step.lora_targets),
        modules_(step.lora_modules),
        dropout_(step.mode == StepMode::inference ? 0 : step.lora_dropout),
        dora_(step.dora),
        held_(step.formats.parameters) {}

  /// What layer `name` makes of `x` [.., in]: [.., out], with what its adapter makes of `x` added;
  /// the layer alone where it has none.
  Tensor layer(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
               Bias bias) const;

 private:
  /// The factors [rank, in] and [out, rank].
  struct Factors {
    Tensor in, out;
  };
  /// A layer that DoRA stretches.
  struct Base {
    Tensor weight;
    std::optional<Tensor> bias;
    Tensor result;
  };
  bool stand_beside(const std::string& name) const;
  Factors factors(Tape& tape, const std::string& lora, std::int64_t in, std::int64_t out) const;
  Tensor input(Tape& tape, const std::string& lora, const Tensor& x) const;
  Base base(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
            Bias bias) const;
  Tensor stretched(Tape& tape, const std::string& lora, const Tensor& x, const Base& base) const;

  std::int64_t rank_;
  LoraTargets targets_;
  std::vector<std::string> modules_;  ///< none: those of `targets_`
  double dropout_;                    ///< probability
  bool dora_;
  Precision held_;  ///< of the factors
};

}  // namespace tessera
