#include "workloads/ops/experts/routing.h"

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Cumulative sum, comparison with the capacity, multiplication.
constexpr int kCapacityKernels = 3;
/// Of nonzero() once their number is known: set up and run the selection, split the positions by
/// dimension.
constexpr int kSelectionKernels = 3;

/// mask.nonzero(): counts, waits for the number to allocate the result, then writes positions.
/// Source: PyTorch aten/src/ATen/native/cuda/Nonzero.cu (recalled).
void find_tokens(Tape& tape, const std::string& name, const Tensor& mask) {
  tape.launch(name + ".count", reduction_kernel(mask), {mask}, {});
  tape.host_sync(name + ".count");
  const Tensor positions = tape.make(name + ".positions", mask.shape, Precision::int64);
  tape.launch(name + ".nonzero", pointwise_kernel(positions, 1), {mask}, {positions});
  for (int i = 1; i < kSelectionKernels; ++i) {
    map_in_place(tape, name + ".nonzero", positions, {});
  }
}

Kernel row_copy(const Tensor& rows, KernelKind kind) {
  return pointwise_kernel(rows, 0, kind);
}

}  // namespace

Tensor route(Tape& tape, const std::string& name, const Tensor& x, std::int64_t experts) {
  const Tensor logits = linear(tape, name + ".classifier", x, experts, Bias::none);
  const Tensor probabilities = softmax(tape, name + ".softmax", logits);
  const Tensor chosen =
      tape.make(name + ".argmax", StridedShape(x.sizes()).narrowed(2, 1), Precision::int64);
  tape.launch(name + ".argmax", reduction_kernel(probabilities), {probabilities}, {chosen});
  const Tensor mask = tape.make(name + ".capacity", probabilities.shape, Precision::int64);
  tape.launch(name + ".zeros", pointwise_kernel(mask, 0, KernelKind::fill), {}, {mask});
  tape.launch(name + ".one_hot", pointwise_kernel(chosen, 0, KernelKind::scatter), {chosen},
              {mask});
  for (int i = 0; i < kCapacityKernels; ++i) map_in_place(tape, name + ".capacity", mask, {});

  Sizes per_token = x.sizes();
  per_token.back() = 1;
  const Tensor highest = tape.make(name + ".max", StridedShape(per_token));
  tape.launch(name + ".max", reduction_kernel(probabilities), {probabilities}, {highest});
  tape.launch(name + ".index", reduction_kernel(mask), {mask}, {chosen});  // returned, never read
  tape.differentiable({probabilities}, highest, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".max.grad", probabilities.shape);
    t.launch(name + ".max.zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    t.launch(name + ".max.scatter", pointwise_kernel(gradients[0], 1, KernelKind::scatter),
             {gradients[0], chosen}, {grad});
    t.add_gradient(probabilities, grad);
  });
  return highest;
}

Tensor routed_tokens(Tape& tape, const std::string& name, std::int64_t tokens) {
  const Tensor mask = tape.make(name + ".mask", StridedShape({tokens}), Precision::int8);
  tape.launch(name + ".mask", pointwise_kernel(mask, 1), {}, {mask});
  return mask;
}

Tensor select_tokens(Tape& tape, const std::string& name, const Tensor& x, const Tensor& mask,
                     std::int64_t capacity) {
  find_tokens(tape, name, mask);
  const Tensor out = tape.make(name + ".tokens", StridedShape({capacity, x.shape.last()}));
  tape.launch_partial(name + ".gather", row_copy(out, KernelKind::gather),
                      {{x.storage, out.traffic()}}, {{out.storage, out.traffic()}});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", StridedShape(x.sizes()));
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    t.launch_partial(name + ".scatter", row_copy(out, KernelKind::scatter),
                     {{gradients[0].storage, gradients[0].traffic()}},
                     {{grad.storage, gradients[0].traffic()}});
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor scatter_tokens(Tape& tape, const std::string& name, const Tensor& target, const Tensor& mask,
                      const Tensor& results) {
  find_tokens(tape, name, mask);
  tape.launch_partial(name + ".put", row_copy(results, KernelKind::scatter),
                      {{results.storage, results.traffic()}},
                      {{target.storage, results.traffic()}});
  const Tensor out = tape.alias(target, target.shape);
  tape.differentiable({target, results}, out, [=](Tape& t, auto gradients) {
    const Tensor rest = map(t, name + ".clone", {gradients[0]}, 0);
    const Tensor grad = t.make(name + ".results.grad", results.shape);
    t.launch_partial(name + ".zero_rows", row_copy(results, KernelKind::scatter), {},
                     {{rest.storage, results.traffic()}});
    t.launch_partial(name + ".gather", row_copy(results, KernelKind::gather),
                     {{gradients[0].storage, grad.traffic()}}, {{grad.storage, grad.traffic()}});
    t.add_gradient(target, rest);
    t.add_gradient(results, grad);
  });
  return out;
}

}  // namespace tessera
