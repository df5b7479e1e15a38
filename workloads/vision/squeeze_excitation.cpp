#include "workloads/vision/squeeze_excitation.h"

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/pooling.h"

namespace tessera {

Tensor squeeze_excitation(Tape& tape, const std::string& name, const Tensor& x,
                          std::int64_t reduction) {
  const std::int64_t images = x.sizes()[0], channels = x.sizes()[1];
  const Tensor means = adaptive_average_pool2d(tape, name + ".mean", x, 1);
  const Tensor rows = view(tape, means, {images, channels});
  const Tensor squeezed = linear(tape, name + ".squeeze", rows, channels / reduction);
  const Tensor rectified = relu(tape, name + ".relu", squeezed);
  const Tensor expanded = linear(tape, name + ".expand", rectified, channels);
  return view(tape, sigmoid(tape, name + ".sigmoid", expanded), {images, channels, 1, 1});
}

Tensor add_scaled(Tape& tape, const std::string& name, const Tensor& residual, const Tensor& x,
                  const Tensor& factors) {
  const Tensor out = map(tape, name, {residual, x, factors}, 2);
  tape.differentiable({residual, x, factors}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    if (t.requires_gradient(residual)) t.add_gradient(residual, g);
    const Tensor weighted = map(t, name + ".factors.mul", {factors});
    t.add_gradient(x, map(t, name + ".grad", {g, weighted}));
    const Tensor values = map(t, name + ".mul", {x});
    const Tensor product = map(t, name + ".factors.grad", {g, values});
    t.add_gradient(factors, sum_to(t, name + ".factors.sum", product, factors.sizes()));
  });
  return out;
}

}  // namespace tessera
