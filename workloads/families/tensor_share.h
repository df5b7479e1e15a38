#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/families/adapters.h"
#include "workloads/model_spec.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/redistribute.h"
#include "workloads/step_options.h"

namespace tessera {

/// What column-split layers read, each of which runs when it is asked for, or all ahead where their
/// products run beside a gather.
class ColumnLayers {
 public:
  /// `summed`: each layer sums the gradient of its input over the group.
  ColumnLayers(Tensor input, std::vector<PartReader> layers, Bias bias, bool summed,
               std::optional<Adapters> adapters)
      : input_(std::move(input)),
        layers_(std::move(layers)),
        bias_(bias),
        summed_(summed),
        adapters_(adapters) {}
  explicit ColumnLayers(std::vector<Tensor> results) : results_(std::move(results)) {}

  Tensor run(Tape& tape, std::size_t layer) const;

 private:
  Tensor input_;
  std::vector<PartReader> layers_;
  Bias bias_ = Bias::none;
  bool summed_ = false;
  std::optional<Adapters> adapters_;
  std::vector<Tensor> results_;
};

/// What a tensor-parallel rank holds of a model of Hugging Face's modules, and what it exchanges
/// with its group around split layers; nothing where it is alone. Activations are [b, s, h].
/// `TensorPlan::sequence`: torchtitan, parallelize_llama (apply_tp): SequenceParallel norms, one
/// gather in front of attention and one in front of the feed-forward (PrepareModuleInput), whose
/// result backward keeps, Rowwise layers that reduce-scatter, loss_parallel.
/// `TensorPlan::replicated`: transformers, integrations/tensor_parallel.py (base_model_tp_plan,
/// lm_head colwise_rep); DeepSpeed, module_inject/layers.py: every column-split layer sums the
/// gradient of its input by itself, row-split ones their output.
/// Where it is alone, adapters may stand beside the layers (sim/scenario/rules).
class TensorShare {
 public:
  explicit TensorShare(const StepOptions& step);

  int ranks() const { return ranks_; }
  bool by_sequence() const { return ranks_ > 1 && plan_ == TensorPlan::sequence; }
  /// Of what the group shares.
  std::int64_t of(std::int64_t whole) const { return whole / ranks_; }
  /// Rows of the word table that are looked up here, and that the head multiplies; the last rank
  /// may have fewer. A plan that replicates looks up in all of it, and splits a head of its own
  /// alone.
  std::int64_t vocabulary(std::int64_t words) const { return by_sequence() ? part(words) : words; }
  std::int64_t head_words(const ModelSpec& model) const {
    return by_sequence() || !model.tied_embeddings ? part(model.vocab) : model.vocab;
  }
  /// Positions that a rank holds between split layers, and within them.
  std::int64_t positions() const { return by_sequence() ? seen_ / ranks_ : seen_; }
  std::int64_t seen() const { return seen_; }

  /// Weight of a norm, which all ranks hold: by sequence each has a share of its gradient, of a
  /// norm over heads that of its heads (torchtitan, qwen3's plan: SequenceParallel over heads). In
  /// pipelines the shares are summed behind the last micro-batch (Block::partial_parameters).
  Tensor norm_weight(Tape& tape, const std::string& name, std::int64_t size) const;
  bool sums_norms_late() const { return by_sequence() && late_; }
  /// Layers that read the same; `layers` say their part for this rank.
  ColumnLayers columns(Tape& tape, const std::string& name, const Tensor& x,
                       const std::vector<PartReader>& layers, Bias bias = Bias::none) const;
  /// A layer whose input is split: its results, summed.
  Tensor row(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out) const;
  /// The rows of the word table that tokens pick; logits, of this rank's words by sequence.
  Tensor embedded(Tape& tape, const Tensor& table, const Tensor& ids) const;
  Tensor logits(Tape& tape, const ModelSpec& model, const Tensor& x, const Tensor& table) const;

 private:
  std::int64_t part(std::int64_t words) const { return (words + ranks_ - 1) / ranks_; }

  int ranks_;
  TensorPlan plan_;
  bool asynchronous_;
  bool late_;
  std::int64_t seen_;
  Adapters adapters_;
};

}  // namespace tessera
