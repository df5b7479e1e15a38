#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "workloads/graph/tape.h"
#include "workloads/model_graph.h"
#include "workloads/sharding.h"
#include "workloads/step_options.h"

namespace tessera {

/// That share a scale which Transformer Engine rearranges for cuBLAS; 0: there is none.
constexpr int numbers_per_scale(const StepOptions& step) {
  if (!step.framework.transformer_engine) return 0;
  if (step.precision == Precision::fp4) return 16;
  const bool blocks =
      step.precision == Precision::fp8 && step.framework.fp8_scaling == Fp8Scaling::mxfp8;
  return blocks ? 32 : 0;
}

/// Numbers of a row, and side of a square of a weight, that share a scale; 0: there are none.
/// Source: Transformer Engine common/recipe/__init__.py, Float8BlockScaling (recalled).
constexpr int tile_of_scales(const StepOptions& step) {
  const bool tiles =
      step.precision == Precision::fp8 && step.framework.fp8_scaling == Fp8Scaling::blockwise;
  return tiles ? 128 : 0;
}

inline TapeOptions tape_options(const StepOptions& step) {
  TapeOptions options;
  options.differentiation =
      step.mode == StepMode::inference ? Differentiation::none : Differentiation::recorded;
  options.precision = activation_precision(step.precision);
  options.gemm_precision = step.precision;
  options.scales_by_largest = step.framework.fp8_scaling == Fp8Scaling::current;
  options.casts_both_orders = step.framework.transformer_engine || !options.scales_by_largest;
  options.transposes = step.framework.fp8_transposes;
  options.numbers_per_scale = numbers_per_scale(step);
  options.tile = tile_of_scales(step);
  options.gathers_fp8 = gathers_fp8(step);
  options.keeps_cast_weights = step.framework.transformer_engine && !gathers_units(step);
  options.parameter_precision = block_parameter_format(step);
  options.gradient_precision = block_gradient_format(step);
  options.joins_in_place = step.framework.gradients_join_in_place;
  options.reentrant = step.framework.reentrant_checkpoints;
  options.python_functions = step.framework.python_functions;
  // Inductor lays compiled convolutions out by itself.
  options.reorders_images =
      !step.framework.channels_last && step.framework.kernels == KernelMode::eager;
  options.frozen = step.lora_rank > 0;
  options.gathers_frozen = gathers_units(step);
  options.frozen_precision = step.base_weights == BaseWeights::in_precision
                                 ? options.precision
                                 : options.parameter_precision;
  options.quantizes = has_four_bits(step.base_weights);
  options.quantizes_scales = step.base_weights == BaseWeights::nf4_double_quant;
  options.products_accumulate = step.framework.products_accumulate && !scatters_gradients(step);
  return options;
}

/// Probability that is in force: eval mode drops nothing.
inline double active_dropout(const StepOptions& step, double probability) {
  return step.mode == StepMode::inference ? 0 : probability;
}

/// Records the block whose operators `forward(tape)` calls.
template <class Forward>
Block record_block(std::string name, const StepOptions& step, Forward forward) {
  Tape tape(tape_options(step));
  forward(tape);
  return std::move(tape).finish(std::move(name));
}

/// Builds a block of a model.
using BlockBuilder = void (*)(Tape&, const ModelSpec&, const StepOptions&);
/// A decoder with as many equal layers as `model` says.
ModelGraph decoder_of(const ModelSpec& model, const StepOptions& step, BlockBuilder embedding,
                      BlockBuilder layer, BlockBuilder head);

/// A table that a step computes once, by one kernel and without gradients.
Tensor computed_table(Tape& tape, const std::string& name, const Sizes& sizes, Precision precision,
                      std::initializer_list<Tensor> reads = {});

/// What follows the logits [.., V] of `tokens` tokens: the loss in training, a gradient from
/// outside where the loss is not part of the step, nothing in inference.
/// `causal` models predict the next token: where the framework shifts labels, the logits of each
/// sequence but the last are copied, and backward makes zeros and a copy for either of two slices.
void finish_with_logits(Tape& tape, const StepOptions& step, const Tensor& logits,
                        bool causal = false);

/// Weight of the vocabulary projection: the embedding's own if tied. [V, h]
Tensor output_embedding(Tape& tape, bool tied, std::int64_t vocab, std::int64_t hidden);
/// The table that tokens are looked up in. [V, h]
Tensor input_embedding(Tape& tape, bool tied, std::int64_t vocab, std::int64_t hidden);

/// What follows the last layer of a decoder with layer norms before its branches: the final norm
/// and the vocabulary projection.
void decoder_head(Tape& tape, const ModelSpec& model, const StepOptions& step);

}  // namespace tessera
