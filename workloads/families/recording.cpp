#include "workloads/families/recording.h"

#include "workloads/families/families.h"
#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/views.h"

namespace tessera {

void finish_with_logits(Tape& tape, const StepOptions& step, const Tensor& logits) {
  tape.keep(logits);
  if (step.mode == StepMode::inference) return;
  if (step.mode == StepMode::forward_backward) return tape.differentiate(logits);
  tape.set_phase(Phase::loss);
  const std::int64_t tokens = logits.elements() / logits.shape.last();
  const Tensor labels = tape.input("labels", {tokens}, Precision::int64);
  const Tensor rows = view(tape, logits, {tokens, logits.shape.last()});
  tape.differentiate(cross_entropy(tape, "loss", rows, labels));
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
  ModelGraph sequence;
  sequence.blocks = {std::move(embedding), std::move(layer), std::move(head)};
  sequence.order.push_back(0);
  sequence.order.insert(sequence.order.end(), static_cast<std::size_t>(layers), 1);
  sequence.order.push_back(2);
  sequence.first_layer = 1;
  sequence.layers = static_cast<int>(layers);
  return sequence;
}

}  // namespace tessera
