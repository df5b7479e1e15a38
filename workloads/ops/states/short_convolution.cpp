#include "workloads/ops/states/short_convolution.h"

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

constexpr std::int64_t kTaps = 3;  // conv_L_cache

Tensor convolved(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor weight = tape.parameter(name + ".weight", {x.shape.last(), kTaps});
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, pointwise_kernel(out, 2 * kTaps), {x, weight}, {out});
  tape.differentiable({x, weight}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    const Tensor of_weight = t.make(name + ".weight.grad", weight.shape, weight.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 4 * kTaps), {gradients[0], x, weight},
             {grad, of_weight});
    t.add_gradient(x, grad);
    t.add_gradient(weight, of_weight);
  });
  return out;
}

}  // namespace

Tensor gated_short_convolution(Tape& tape, const std::string& name, const Tensor& wide) {
  const std::int64_t channels = wide.shape.last() / 3;
  const auto parts = split_last(tape, name + ".parts", wide, {channels, channels, channels});
  const Tensor let_in = multiply(tape, name + ".gate_in", parts[0], parts[2]);
  const Tensor mixed = convolved(tape, name + ".conv1d", let_in);
  return multiply(tape, name + ".gate_out", parts[1], mixed);
}

}  // namespace tessera
