#include "workloads/families/tensor_share.h"

#include "workloads/ops/embedding.h"
#include "workloads/ops/megatron.h"
#include "workloads/ops/views.h"

namespace tessera {

Tensor ColumnLayers::run(Tape& tape, std::size_t layer) const {
  if (!results_.empty()) return results_[layer];
  const PartReader& reader = layers_[layer];
  const Tensor read = summed_ ? with_summed_gradient(tape, reader.name + ".input", input_) : input_;
  return adapters_ ? adapters_->layer(tape, reader.name, read, reader.out, bias_)
                   : linear(tape, reader.name, read, reader.out, bias_);
}

TensorShare::TensorShare(const StepOptions& step)
    : ranks_(step.layout.tensor),
      plan_(step.framework.tensor_plan),
      asynchronous_(step.framework.overlap_tensor_products && by_sequence()),
      late_(step.layout.pipeline > 1 && !step.data_parallel.reduce_each_micro_batch),
      seen_(step.sequence_length / step.layout.context),
      adapters_(step) {}

Tensor TensorShare::norm_weight(Tape& tape, const std::string& name, std::int64_t size) const {
  const Tensor weight = tape.parameter(name + ".weight", {size});
  return by_sequence() && !late_ ? with_summed_gradient(tape, name + ".weight", weight) : weight;
}

ColumnLayers TensorShare::columns(Tape& tape, const std::string& name, const Tensor& x,
                                  const std::vector<PartReader>& layers, Bias bias) const {
  if (asynchronous_ && bias == Bias::none)
    return ColumnLayers(gathered_products(tape, name, x, layers, ranks_));
  const Tensor input = by_sequence() ? whole_sequence(tape, name, x, ranks_) : x;
  return {input, layers, bias, ranks_ > 1 && plan_ == TensorPlan::replicated, adapters_};
}

Tensor TensorShare::row(Tape& tape, const std::string& name, const Tensor& x,
                        std::int64_t out) const {
  if (ranks_ == 1) return adapters_.layer(tape, name, x, out, Bias::none);
  if (asynchronous_) {
    const Sizes sizes = x.sizes();
    const Tensor weight = tape.parameter(name + ".weight", {out, x.shape.last()});
    const Tensor rows = view(tape, x, {sizes[0] * sizes[1], sizes[2]});
    const Tensor part =
        linear_matrix(tape, name, rows, weight, {.scatter_output_over = ranks_, .in_chunks = true});
    return view(tape, part, {sizes[0], sizes[1] / ranks_, out});
  }
  const Tensor partial = linear(tape, name, x, out, Bias::none);
  return by_sequence() ? part_of_sum(tape, name, partial, ranks_)
                       : sum_over_ranks(tape, name, partial);
}

Tensor TensorShare::embedded(Tape& tape, const Tensor& table, const Tensor& ids) const {
  const char* name = "embedding.tokens";
  if (!by_sequence()) return embedding(tape, name, table, ids);
  const Tensor shares = vocab_parallel_embedding(tape, name, table, ids, ranks_, false);
  return part_of_sum(tape, "embedding", shares, ranks_);
}

Tensor TensorShare::logits(Tape& tape, const ModelSpec& model, const Tensor& x,
                           const Tensor& table) const {
  const std::string name = "lm_head";
  const LinearLayer layer{.full_precision = true};
  if (by_sequence())
    return linear_over_last(tape, name, whole_sequence(tape, name, x, ranks_), table, layer);
  if (ranks_ == 1 || head_words(model) == model.vocab)
    return linear_over_last(tape, name, x, table, layer);
  const Tensor read = with_summed_gradient(tape, name + ".input", x);
  return whole_rows(tape, name, linear_over_last(tape, name, read, table, layer), ranks_);
}

}  // namespace tessera
