#include "workloads/ops/vision/pooling.h"

#include <vector>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

Access all_of(const Tensor& tensor) {
  return {tensor.storage, tensor.traffic()};
}

/// Autograd keeps `tensor` although the kernel needs its sizes alone.
Access kept(const Tensor& tensor) {
  return {tensor.storage, Bytes(0)};
}

StridedShape pooled_shape(const Tensor& x, const PoolingWindow& window) {
  const Sizes& in = x.sizes();
  return StridedShape({in[0], in[1], pooled_extent(in[2], window), pooled_extent(in[3], window)});
}

/// Gradient of `x` written by one kernel from `reads`, after a zero fill if `fills`.
Tensor spread_gradient(Tape& t, const std::string& name, const Tensor& x, bool fills,
                       std::vector<Access> reads) {
  const Tensor grad = t.make(name + ".grad", StridedShape(x.sizes()), x.precision);
  if (fills) t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
  reads.push_back(kept(x));
  t.launch_partial(name + ".backward", strided_copy(grad, 1), std::move(reads), {all_of(grad)});
  return grad;
}

Tensor mean_of_images(Tape& tape, const std::string& name, const Tensor& x) {
  const Sizes& in = x.sizes();
  const Tensor out = tape.make(name, StridedShape({in[0], in[1], 1, 1}), x.precision);
  Kernel kernel = reduction_kernel(x);
  kernel.rows = in[0] * in[1];
  kernel.cols = in[2] * in[3];
  tape.launch(name, kernel, {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor spread = t.alias(gradients[0], gradients[0].shape.expanded(x.sizes()));
    t.add_gradient(x, map(t, name + ".div", {spread}));
  });
  return out;
}

}  // namespace

std::int64_t pooled_extent(std::int64_t in, const PoolingWindow& w) {
  const std::int64_t room = in + 2 * std::int64_t{w.padding} - w.window;
  if (room < 0) return 0;
  const std::int64_t steps = w.rounds_up ? (room + w.stride - 1) / w.stride : room / w.stride;
  const bool starts_outside = steps * w.stride >= in + w.padding;
  return starts_outside ? steps : steps + 1;
}

Tensor max_pool2d(Tape& tape, const std::string& name, const Tensor& x,
                  const PoolingWindow& window) {
  const Tensor out = tape.make(name, pooled_shape(x, window), x.precision);
  const Tensor positions = tape.make(name + ".positions", out.shape, Precision::int64);
  tape.launch(name, strided_copy(x, 1), {x}, {out, positions});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, spread_gradient(t, name, x, true, {all_of(gradients[0]), all_of(positions)}));
  });
  return out;
}

Tensor average_pool2d(Tape& tape, const std::string& name, const Tensor& x,
                      const PoolingWindow& window) {
  const Tensor out = tape.make(name, pooled_shape(x, window), x.precision);
  tape.launch(name, strided_copy(x, 1), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, spread_gradient(t, name, x, false, {all_of(gradients[0])}));
  });
  return out;
}

Tensor adaptive_average_pool2d(Tape& tape, const std::string& name, const Tensor& x,
                               std::int64_t size) {
  if (size == 1) return mean_of_images(tape, name, x);
  const Sizes& in = x.sizes();
  const Tensor out = tape.make(name, StridedShape({in[0], in[1], size, size}), x.precision);
  tape.launch(name, strided_copy(x, 1), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, spread_gradient(t, name, x, true, {all_of(gradients[0])}));
  });
  return out;
}

}  // namespace tessera
