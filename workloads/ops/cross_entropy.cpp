#include "workloads/ops/cross_entropy.h"

#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"

namespace tessera {

Tensor cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                     const Tensor& labels) {
  const Tensor log_probabilities = log_softmax(tape, name + ".log_softmax", logits);
  const Tensor loss = tape.make(name, StridedShape({1}), logits.precision);
  const Bytes picked(labels.elements() * element_bytes(logits.precision));
  const Access chosen{log_probabilities.storage, picked};
  const Access targets{labels.storage, labels.traffic()};
  tape.launch_partial(name + ".nll", reduction_kernel(labels), {chosen, targets},
                      {{loss.storage, loss.traffic()}});
  tape.differentiable({log_probabilities}, loss, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", log_probabilities.shape, logits.precision);
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    t.launch_partial(name + ".nll_backward", pointwise_kernel(labels, 1, KernelKind::scatter),
                     {{gradients[0].storage, gradients[0].traffic()}, targets},
                     {{grad.storage, picked}});
    t.add_gradient(log_probabilities, grad);
  });
  return loss;
}

}  // namespace tessera
