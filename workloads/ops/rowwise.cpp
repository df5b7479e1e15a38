#include "workloads/ops/rowwise.h"

#include <algorithm>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

Kernel row_kernel(const Tensor& x, KernelKind kind, double flops) {
  return pointwise_kernel(x, flops, kind);
}

/// Rows that do not fit into a block's shared memory are read once per pass over them.
/// Source: PyTorch aten/src/ATen/native/cuda/SoftMax.cu, `cunn_SoftMaxForward` (maximum, sum,
/// result) and `cunn_SoftMaxBackward` (sum, result).
constexpr std::int64_t kSharedMemoryBytes = 48 * 1024;
/// Blocks that walk over their rows at a time, two per SM: at least so many (P100, the smallest GPU
/// with large memory, has 56 SMs).
constexpr std::int64_t kRowsInFlight = 112;

/// Softmax over the rows of `x`, each read `passes` times.
Kernel softmax_kernel(const Tensor& x, double flops, int passes) {
  Kernel kernel = row_kernel(x, KernelKind::softmax, flops);
  const std::int64_t row_bytes = kernel.cols * element_bytes(x.precision);
  if (row_bytes <= kSharedMemoryBytes) return kernel;
  kernel.bytes_refetched = Bytes((passes - 1) * kernel.rows * row_bytes);
  kernel.reuse_footprint = Bytes(std::min(kernel.rows, kRowsInFlight) * row_bytes);
  return kernel;
}

}  // namespace

Tensor layer_norm(Tape& tape, const std::string& name, const Tensor& x, NormTerms terms) {
  const std::int64_t cols = x.shape.last();
  std::vector<Tensor> affine;
  if (terms != NormTerms::none) affine.push_back(tape.parameter(name + ".weight", {cols}));
  if (terms == NormTerms::weight_and_bias) affine.push_back(tape.parameter(name + ".bias", {cols}));
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  const Tensor statistics =
      tape.make(name + ".statistics", StridedShape({x.elements() / cols, 2}), Precision::fp32);
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), affine.begin(), affine.end());
  const std::vector<Tensor> written{out, statistics};
  tape.launch(name, row_kernel(x, KernelKind::layer_norm, 8), inputs, written);
  tape.differentiable(inputs, std::span(&out, 1), [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    const Tensor grad_x = t.make(name + ".grad", x.shape.dense(), x.precision);
    std::vector<Tensor> needed{g, x, statistics};
    if (!affine.empty()) needed.push_back(affine.front());
    t.launch(name + ".grad_input", row_kernel(x, KernelKind::layer_norm, 12), needed,
             std::vector{grad_x});
    if (affine.empty() || !t.requires_gradient(affine.front())) return t.add_gradient(x, grad_x);
    std::vector<Tensor> sums{t.make(name + ".weight.grad", affine.front().shape)};
    if (affine.size() > 1) sums.push_back(t.make(name + ".bias.grad", affine.back().shape));
    const std::vector<Tensor> read{g, x, statistics};
    t.launch(name + ".gamma_beta", row_kernel(x, KernelKind::layer_norm, 4), read, sums);
    t.add_gradient(x, grad_x);
    for (std::size_t i = 0; i < affine.size(); ++i) t.add_gradient(affine[i], sums[i]);
  });
  return out;
}

Tensor rms_norm(Tape& tape, const std::string& name, const Tensor& x) {
  return rms_norm(tape, name, x, tape.parameter(name + ".weight", {x.shape.last()}));
}

Tensor rms_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight) {
  const Tensor wide = cast(tape, name + ".float", x, Precision::fp32);
  const Tensor square = power(tape, name + ".pow", wide);
  const Tensor variance = mean_last(tape, name + ".mean", square);
  const Tensor shifted = add_number(tape, name + ".eps", variance);
  const Tensor factor = rsqrt(tape, name + ".rsqrt", shifted);
  const Tensor normalized = multiply(tape, name + ".normalize", wide, factor);
  return multiply(tape, name + ".weight", weight,
                  cast(tape, name + ".cast", normalized, x.precision));
}

Tensor softmax(Tape& tape, const std::string& name, const Tensor& given) {
  const Tensor x = contiguous(tape, name + ".rows", given);
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, softmax_kernel(x, 5, 3), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor weighted = map(t, name + ".mul", {gradients[0], out});
    const Tensor grad = t.make(name + ".grad", out.shape, out.precision);
    t.launch(name + ".backward", softmax_kernel(out, 3, 2), {weighted, out}, {grad});
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor log_softmax(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, softmax_kernel(x, 5, 3), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", out.shape, out.precision);
    t.launch(name + ".backward", softmax_kernel(out, 4, 2), {gradients[0], out}, {grad});
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor dropout(Tape& tape, const std::string& name, const Tensor& x, double probability) {
  if (probability <= 0) return x;
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  const Tensor mask = tape.make(name + ".mask", x.shape.dense(), Precision::int8);
  tape.launch(name, pointwise_kernel(x, 3), {x}, {out, mask});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor scaled = map(t, name + ".masked_scale", {gradients[0], mask}, 2);
    t.reads_bits(mask);
    t.add_gradient(x, scaled);
  });
  return out;
}

}  // namespace tessera
