#include "workloads/ops/loss/cross_entropy.h"

#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"

namespace tessera {

namespace {

/// The mean of what `labels` pick, with a sign.
Tensor negative_log_likelihood(Tape& tape, const std::string& name, const Tensor& log_probabilities,
                               const Tensor& labels) {
  const Precision precision = log_probabilities.precision;
  const Tensor loss = tape.make(name, StridedShape({1}), precision);
  const Bytes picked(labels.elements() * element_bytes(precision));
  const Access chosen{log_probabilities.storage, picked};
  const Access targets{labels.storage, labels.traffic()};
  tape.launch_partial(name + ".nll", reduction_kernel(labels), {chosen, targets},
                      {{loss.storage, loss.traffic()}});
  tape.differentiable({log_probabilities}, loss, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", log_probabilities.shape, precision);
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    t.launch_partial(name + ".nll_backward", pointwise_kernel(labels, 1, KernelKind::scatter),
                     {{gradients[0].storage, gradients[0].traffic()}, targets},
                     {{grad.storage, picked}});
    t.add_gradient(log_probabilities, grad);
  });
  return loss;
}

/// log_softmax over dimension 1 of [b, classes, h, w].
Tensor log_softmax_of_pixels(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  tape.launch(name, pointwise_kernel(x, 5), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, map(t, name + ".backward", {gradients[0], out}, 4));
  });
  return out;
}

}  // namespace

Tensor cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                     const Tensor& labels) {
  return negative_log_likelihood(tape, name, log_softmax(tape, name + ".log_softmax", logits),
                                 labels);
}

Tensor pixel_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                           const Tensor& labels) {
  const Tensor log_probabilities = log_softmax_of_pixels(tape, name + ".log_softmax", logits);
  return negative_log_likelihood(tape, name, log_probabilities, labels);
}

}  // namespace tessera
