#include "workloads/ops/loss/parallel_loss.h"

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Range of this rank's words, two comparisons joined, safe targets, index, mask of the result.
constexpr int kShardedTargetKernels = 6;

/// A number per token in fp32.
class TokenNumbers {
 public:
  TokenNumbers(Tape& tape, const std::string& name, const Tensor& logits, int ranks)
      : tape_(tape), name_(name), logits_(logits), tokens_(logits.sizes()[0]), ranks_(ranks) {}

  Tensor make(const char* part) const {
    return tape_.make(name_ + part, StridedShape({tokens_}), Precision::fp32);
  }
  Tensor reduced(const char* part, const Tensor& rows) const {
    const Tensor numbers = make(part);
    tape_.launch(name_ + part, reduction_kernel(rows), {rows}, {numbers});
    return numbers;
  }
  /// The logit of each token's label, 0 where another rank has it.
  Tensor picked(const Tensor& rows, const Tensor& labels) const {
    const Tensor numbers = make(".target");
    const Access chosen{rows.storage, numbers.traffic()};
    const int kernels = ranks_ > 1 ? kShardedTargetKernels : 1;
    for (int i = 0; i < kernels; ++i)
      tape_.launch_partial(name_ + ".target", pointwise_kernel(numbers, 1), {chosen, whole(labels)},
                           {whole(numbers)});
    return numbers;
  }
  void sum(const Tensor& numbers) const {
    if (ranks_ == 1) return;
    tape_.all_reduce(tape_.name_of(numbers) + ".all_reduce", numbers, GroupKind::tensor);
    tape_.wait();
  }
  Tensor column(const Tensor& numbers) const {
    return tape_.alias(numbers, StridedShape({tokens_, 1}));
  }
  /// The mean over tokens.
  Tensor mean(const Tensor& numbers) const {
    const Tensor loss = tape_.make(name_, StridedShape({1}), Precision::fp32);
    tape_.launch(name_ + ".mean", reduction_kernel(numbers), {numbers}, {loss});
    return loss;
  }

 private:
  Tape& tape_;
  const std::string& name_;
  Tensor logits_;
  std::int64_t tokens_;
  int ranks_;
};

void scatter_ones(Tape& tape, const std::string& name, const Tensor& labels, const Tensor& grad) {
  const Access ones{grad.storage, Bytes(labels.elements() * element_bytes(grad.precision))};
  tape.launch_partial(name + ".scatter", pointwise_kernel(labels, 1, KernelKind::scatter),
                      {whole(labels)}, {ones});
}

}  // namespace

Tensor loss_parallel(Tape& tape, const std::string& name, const Tensor& logits,
                     const Tensor& labels) {
  constexpr int kSeveral = 2;
  const TokenNumbers numbers(tape, name, logits, kSeveral);
  const Tensor largest = numbers.reduced(".max", logits);
  numbers.sum(largest);
  const Tensor shifted = map(tape, name + ".sub", {logits, numbers.column(largest)});
  const Tensor sum = numbers.reduced(".sum", map(tape, name + ".exp", {shifted}, 2));
  numbers.sum(sum);
  const Tensor log = map(tape, name + ".log", {sum});
  const Tensor out = map(tape, name + ".log_softmax", {shifted, numbers.column(log)});
  const Tensor picked = numbers.picked(out, labels);
  numbers.sum(picked);
  const Tensor loss = numbers.mean(picked);
  tape.differentiable({logits}, loss, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", logits.shape, logits.precision);
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    scatter_ones(t, name, labels, grad);
    const Tensor softmax = map(t, name + ".softmax", {out}, 2);
    const Tensor difference = map(t, name + ".difference", {grad, softmax});
    t.add_gradient(logits, map(t, name + ".backward", {difference, gradients[0]}));
  });
  return loss;
}

Tensor compiled_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                              const Tensor& labels, int ranks) {
  const TokenNumbers numbers(tape, name, logits, ranks);
  const Tensor largest = numbers.reduced(".max", logits);
  numbers.sum(largest);
  const Tensor sum = numbers.make(".sum");
  tape.launch(name + ".sum", reduction_kernel(logits), {logits, largest}, {sum});
  numbers.sum(sum);
  const Tensor picked = numbers.picked(logits, labels);
  numbers.sum(picked);
  const Tensor loss = numbers.mean(picked);
  tape.differentiable({logits}, loss, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", logits.shape, logits.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 4),
             {logits, largest, sum, labels, gradients[0]}, {grad});
    t.add_gradient(logits, grad);
  });
  return loss;
}

}  // namespace tessera
