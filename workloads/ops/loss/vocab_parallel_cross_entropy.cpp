#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Vocabulary range, target mask, masked target, index, gather and mask of the predicted logit.
constexpr int kTargetKernels = 9;

/// The pieces of the loss over rows [tokens, V / tensor], in the order in which Megatron computes
/// them.
class VocabParallelLoss {
 public:
  VocabParallelLoss(Tape& tape, const std::string& name, std::int64_t tokens, int tensor)
      : tape_(tape), name_(name), tokens_(tokens), tensor_(tensor) {}

  /// A number per token from its row, e.g. the maximum; of this rank.
  Tensor reduce(const std::string& part, const Tensor& rows) {
    const Tensor numbers = tape_.make(name_ + part, StridedShape({tokens_}), rows.precision);
    tape_.launch(name_ + part, reduction_kernel(rows), {rows}, {numbers});
    return numbers;
  }
  Tensor predicted_logit(const Tensor& labels) {
    const Tensor predicted =
        tape_.make(name_ + ".target", StridedShape({tokens_}), Precision::fp32);
    for (int i = 0; i < kTargetKernels; ++i) {
      tape_.launch(name_ + ".target", pointwise_kernel(predicted, 1), {labels}, {predicted});
    }
    return predicted;
  }
  void sum_over_ranks(const Tensor& numbers) {
    tensor_all_reduce(tape_, tape_.name_of(numbers) + ".all_reduce", numbers, tensor_);
  }
  /// Numbers per token, to be broadcast over rows.
  static Tensor column(Tape& tape, const Tensor& numbers) {
    return tape.alias(numbers, StridedShape({numbers.elements(), 1}));
  }

 private:
  Tape& tape_;
  const std::string& name_;
  std::int64_t tokens_;
  int tensor_;
};

}  // namespace

Tensor vocab_parallel_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                                    const Tensor& labels, int tensor, bool in_place) {
  const std::int64_t tokens = labels.elements();
  VocabParallelLoss parts(tape, name, tokens, tensor);
  const Tensor rows = reshape(tape, logits, {tokens, logits.shape.last()});
  const Tensor maximum = parts.reduce(".max", rows);
  parts.sum_over_ranks(maximum);
  const Tensor highest = VocabParallelLoss::column(tape, maximum);
  if (in_place) map_in_place(tape, name + ".sub", rows, {highest});
  const Tensor softmax = in_place ? rows : map(tape, name + ".sub", {rows, highest});
  const Tensor predicted = parts.predicted_logit(labels);
  parts.sum_over_ranks(predicted);
  map_in_place(tape, name + ".exp", softmax, {}, 2);
  const Tensor sum = parts.reduce(".sum", softmax);
  parts.sum_over_ranks(sum);
  const Tensor loss = map(tape, name + ".loss", {map(tape, name + ".log", {sum}), predicted});
  map_in_place(tape, name + ".div", softmax, {VocabParallelLoss::column(tape, sum)});

  tape.differentiable({logits}, loss, [=](Tape& t, auto gradients) {
    const Access targets{labels.storage, labels.traffic()};
    const Access corrected{softmax.storage, gradients[0].traffic()};
    t.launch_partial(name + ".one_hot", pointwise_kernel(labels, 1, KernelKind::scatter),
                     {targets, corrected}, {corrected});
    map_in_place(t, name + ".scale", softmax, {VocabParallelLoss::column(t, gradients[0])});
    t.add_gradient(logits, t.alias(softmax, StridedShape(logits.sizes())));
  });
  return loss;
}

}  // namespace tessera
