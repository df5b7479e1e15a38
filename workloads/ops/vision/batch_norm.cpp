#include "workloads/ops/vision/batch_norm.h"

#include <algorithm>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Channels that the thread blocks of a kernel walk over at a time, one per SM: at least so many
/// (P100, the smallest GPU with large memory, has 56 SMs).
constexpr std::int64_t kChannelsInFlight = 56;

/// A kernel that walks over the channels of `x` twice; `tensors` of the size of `x` are read again.
Kernel two_pass_kernel(const Tensor& x, double flops, std::int64_t tensors) {
  Kernel kernel = pointwise_kernel(x, flops, KernelKind::layer_norm);
  kernel.rows = x.sizes()[1];
  kernel.cols = x.elements() / kernel.rows;
  kernel.bytes_refetched = Bytes(tensors * x.traffic().value());
  kernel.reuse_footprint = Bytes(kernel.bytes_refetched.value() / kernel.rows *
                                 std::min(kernel.rows, kChannelsInFlight));
  return kernel;
}

struct Running {
  Tensor mean, variance, batches;
};

Running running_statistics(Tape& tape, const std::string& name, std::int64_t channels) {
  return {tape.buffer(name + ".running_mean", {channels}, Precision::fp32),
          tape.buffer(name + ".running_var", {channels}, Precision::fp32),
          tape.buffer(name + ".num_batches_tracked", {1}, Precision::int64)};
}

}  // namespace

Tensor batch_norm(Tape& tape, const std::string& name, const Tensor& x) {
  const std::int64_t channels = x.sizes()[1];
  const Tensor weight = tape.parameter(name + ".weight", {channels});
  const Tensor bias = tape.parameter(name + ".bias", {channels});
  const Running running = running_statistics(tape, name, channels);
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  if (!tape.requires_gradient(weight)) {
    tape.launch(name, pointwise_kernel(x, 2), {x, weight, bias, running.mean, running.variance},
                {out});
    return out;
  }
  map_in_place(tape, name + ".num_batches_tracked", running.batches, {});
  const Tensor statistics =
      tape.make(name + ".statistics", StridedShape({channels, 2}), Precision::fp32);
  tape.launch(name, two_pass_kernel(x, 8, 1), {x, weight, bias, running.mean, running.variance},
              {out, statistics, running.mean, running.variance});
  tape.differentiable({x, weight, bias}, out, [=](Tape& t, auto gradients) {
    const Tensor g = contiguous(t, name + ".grad_copy", gradients[0]);
    const Tensor grad_x = t.make(name + ".grad", StridedShape(x.sizes()), x.precision);
    const Tensor grad_weight = t.make(name + ".weight.grad", weight.shape);
    const Tensor grad_bias = t.make(name + ".bias.grad", bias.shape);
    t.launch(name + ".backward", two_pass_kernel(x, 12, 2), {g, x, statistics, weight},
             {grad_x, grad_weight, grad_bias});
    t.add_gradient(x, grad_x);
    t.add_gradient(weight, grad_weight);
    t.add_gradient(bias, grad_bias);
  });
  return out;
}

}  // namespace tessera
