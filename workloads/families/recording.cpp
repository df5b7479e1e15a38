#include "workloads/families/recording.h"

#include "workloads/families/families.h"
#include "workloads/ops/loss/cross_entropy.h"
#include "workloads/ops/loss/parallel_loss.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {

namespace {

bool keeps_logits(const StepOptions& step) {
  const FrameworkProfile& profile = step.framework;
  return step.mode != StepMode::training || profile.keeps_logits ||
         (profile.keeps_outputs && step.layout.pipeline > 1);
}

/// logits[..., :-1, :].contiguous() of [b, s, V], and the same of the labels.
Tensor without_last(Tape& tape, const StepOptions& step, const Tensor& logits) {
  const Sizes& sizes = logits.sizes();
  const Tensor whole_rows = slice_last(tape, "loss.words", logits, sizes[2]);
  const Tensor by_word = transpose(tape, whole_rows, 1, 2);
  const Tensor shorter = slice_last(tape, "loss.shift", by_word, sizes[1] - 1);
  const Tensor labels = tape.input("labels", {step.micro_batch, sizes[1]}, Precision::int64);
  const Tensor copy =
      tape.make("loss.labels.shift", StridedShape({sizes[0], sizes[1] - 1}), Precision::int64);
  tape.launch("loss.labels.shift", pointwise_kernel(copy, 0, KernelKind::copy), {labels}, {copy});
  return contiguous(tape, "loss.shift.copy", transpose(tape, shorter, 1, 2));
}

Tensor loss_of(Tape& tape, const StepOptions& step, const Tensor& rows, const Tensor& labels) {
  const FrameworkProfile& profile = step.framework;
  const bool in_parts = profile.tensor_plan == TensorPlan::sequence && step.layout.tensor > 1;
  if (profile.compiled_loss)
    return compiled_cross_entropy(tape, "loss", rows, labels, in_parts ? step.layout.tensor : 1);
  return in_parts ? loss_parallel(tape, "loss", rows, labels)
                  : cross_entropy(tape, "loss", rows, labels);
}

}  // namespace

void finish_with_logits(Tape& tape, const StepOptions& step, const Tensor& given, bool causal) {
  if (keeps_logits(step)) tape.keep(given);
  if (step.mode == StepMode::inference) return;
  if (step.mode == StepMode::forward_backward) return tape.differentiate(given);
  tape.set_phase(Phase::loss);
  const bool shifts = causal && step.framework.shifts_labels && given.sizes()[1] > 1;
  const Tensor logits = shifts ? without_last(tape, step, given) : given;
  const std::int64_t tokens = logits.elements() / logits.shape.last();
  const Tensor labels =
      tape.input(shifts ? "shifted_labels" : "labels", {tokens}, Precision::int64);
  const bool casts = step.framework.fp32_logits && !step.framework.compiled_loss;
  const Tensor floats = casts ? cast(tape, "loss.float", logits, Precision::fp32) : logits;
  const Tensor rows = view(tape, floats, {tokens, logits.shape.last()});
  tape.differentiate(loss_of(tape, step, rows, labels));
}

Tensor output_embedding(Tape& tape, bool tied, std::int64_t vocab, std::int64_t hidden) {
  return tied ? tape.parameter_finished_elsewhere("embedding.tokens", {vocab, hidden})
              : tape.parameter("head.projection", {vocab, hidden});
}

Tensor input_embedding(Tape& tape, bool tied, std::int64_t vocab, std::int64_t hidden) {
  return tied ? tape.parameter_with_pending_gradient("embedding.tokens", {vocab, hidden})
              : tape.parameter("embedding.tokens", {vocab, hidden});
}

ModelGraph decoder_sequence(Block embedding, Block layer, Block head, std::int64_t layers) {
  ModelGraph graph;
  graph.hidden_bytes = input_bytes(layer);
  graph.blocks = {std::move(embedding), std::move(layer), std::move(head)};
  graph.order = {0};
  graph.layer_numbers = {kNoLayer};
  for (int layer_number = 0; layer_number < layers; ++layer_number) {
    graph.order.push_back(1);
    graph.layer_numbers.push_back(layer_number);
  }
  graph.order.push_back(2);
  graph.layer_numbers.push_back(kNoLayer);
  return graph;
}

ModelGraph decoder_of(const ModelSpec& model, const StepOptions& step, BlockBuilder embedding,
                      BlockBuilder layer, BlockBuilder head) {
  const auto record = [&](const char* name, BlockBuilder build) {
    return record_block(name, step, [&](Tape& tape) { build(tape, model, step); });
  };
  return decoder_sequence(record("embedding", embedding), record("layer", layer),
                          record("head", head), model.layers);
}

Tensor computed_table(Tape& tape, const std::string& name, const Sizes& sizes, Precision precision,
                      std::initializer_list<Tensor> reads) {
  const Tensor table = tape.make(name, StridedShape(sizes), precision);
  tape.launch(name, pointwise_kernel(table, 1), reads, {table});
  return table;
}

void decoder_head(Tape& tape, const ModelSpec& model, const StepOptions& step) {
  const Tensor x =
      tape.block_input("hidden", {step.micro_batch, step.sequence_length, model.hidden});
  const Tensor normalized = layer_norm(tape, "ln_f", x);
  const Tensor table = output_embedding(tape, model.tied_embeddings, model.vocab, model.hidden);
  finish_with_logits(tape, step,
                     linear_over_last(tape, "lm_head", normalized, table, {.full_precision = true}),
                     true);
}

}  // namespace tessera
