#include "workloads/ops/states/mamba.h"

#include <algorithm>
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/chunk_products.h"

namespace tessera {
namespace {

constexpr std::int64_t kChunk = 128;      // positions; Megatron-Core MambaMixer, chunk_size
constexpr std::int64_t kConvolution = 4;  // positions; d_conv

/// Tensors of the scan, the same in both directions.
class Scan {
 public:
  Scan(std::string name, const MambaShape& shape) : name_(std::move(name)), shape_(shape) {}

  /// Convolution, step sizes, the chunks' states and their passing on.
  void states(Tape& tape, const Tensor& projected) {
    x_ = make(tape, ".convolved", {rows(), shape_.convolved()}, projected.precision);
    launch(tape, ".conv1d", x_, 2 * kConvolution, {projected});
    steps_ = make(tape, ".steps", {rows(), shape_.heads}, Precision::fp32);
    launch(tape, ".chunk_cumsum", steps_, 10, {projected});
    states_ = make(tape, ".states", {chunks() * shape_.heads, shape_.head_dim * shape_.state},
                   Precision::fp32);
    multiply(tape, ".chunk_state", of_state(), {x_, steps_}, states_);
    launch(tape, ".state_passing", states_, 2, {states_});
  }
  /// What the chunks give.
  Tensor outputs(Tape& tape, const Tensor& projected) {
    pairs_ = make(tape, ".pairs", {chunks() * shape_.groups, kChunk * kChunk}, Precision::fp32);
    multiply(tape, ".bmm_chunk", of_pairs(), {x_}, pairs_);
    const Tensor y = make(tape, ".scanned", {rows(), shape_.inner()}, projected.precision);
    multiply(tape, ".chunk_scan.inside", inside(), {pairs_, x_, steps_}, y);
    multiply(tape, ".chunk_scan.before", of_state(), {states_, x_, steps_}, y);
    return y;
  }
  /// Gradient of `projected`: two products for each of forward's.
  Tensor backward(Tape& tape, const Tensor& projected, const Tensor& gradient) {
    states(tape, projected);
    pairs_ =
        make(tape, ".pairs.again", {chunks() * shape_.groups, kChunk * kChunk}, Precision::fp32);
    multiply(tape, ".bmm_chunk", of_pairs(), {x_}, pairs_);
    const Tensor result = tape.make(name_ + ".grad", projected.shape.dense(), projected.precision);
    const Tensor of_states = make(tape, ".states.grad", states_.sizes(), Precision::fp32);
    const Tensor of_x = make(tape, ".convolved.grad", x_.sizes(), projected.precision);
    const Tensor of_c = make(tape, ".pairs.grad", pairs_.sizes(), Precision::fp32);
    multiply(tape, ".chunk_scan.dstates", of_state(), {gradient, x_, steps_}, of_states);
    launch(tape, ".state_passing.backward", of_states, 2, {of_states});
    multiply(tape, ".chunk_scan.dcb", inside(), {gradient, x_, steps_}, of_c);
    multiply(tape, ".chunk_scan.dx", inside(), {pairs_, gradient, steps_}, of_x);
    multiply(tape, ".chunk_scan.dc", of_state(), {gradient, states_}, of_x);
    multiply(tape, ".chunk_state.dx", of_state(), {of_states, x_}, of_x);
    multiply(tape, ".chunk_state.db", of_state(), {of_states, x_}, of_x);
    multiply(tape, ".bmm_chunk.db", of_pairs_gradient(), {of_c, x_}, of_x);
    multiply(tape, ".bmm_chunk.dc", of_pairs_gradient(), {of_c, x_}, of_x);
    launch(tape, ".chunk_cumsum.backward", steps_, 10, {steps_});
    launch(tape, ".conv1d.backward", result, 4 * kConvolution, {of_x, projected, steps_});
    return result;
  }

 private:
  std::int64_t rows() const { return shape_.sequences * shape_.positions; }
  std::int64_t chunks() const {
    return shape_.sequences * ((shape_.positions + kChunk - 1) / kChunk);
  }
  ChunkProducts of_state() const {
    return {chunks() * shape_.heads, shape_.head_dim, shape_.state, kChunk};
  }
  ChunkProducts of_pairs() const {
    return {chunks() * shape_.groups, kChunk, kChunk, shape_.state};
  }
  ChunkProducts of_pairs_gradient() const {
    return {chunks() * shape_.groups, kChunk, shape_.state, kChunk};
  }
  /// Below the diagonal alone: half of the depth.
  ChunkProducts inside() const {
    return {chunks() * shape_.heads, kChunk, shape_.head_dim, kChunk / 2};
  }

  Tensor make(Tape& tape, const char* part, const Sizes& sizes, Precision precision) const {
    return tape.make(name_ + part, StridedShape(sizes), precision);
  }
  void launch(Tape& tape, const char* part, const Tensor& out, double flops,
              const std::vector<Tensor>& reads) const {
    tape.launch(name_ + part, pointwise_kernel(out, flops), reads, std::vector{out});
  }
  void multiply(Tape& tape, const char* part, const ChunkProducts& p,
                const std::vector<Tensor>& reads, const Tensor& out) const {
    launch_products(tape, name_ + part, p, reads, {out});
  }

  std::string name_;
  MambaShape shape_;
  Tensor x_, steps_, states_, pairs_;
};

}  // namespace

namespace {

/// Weights that are no product's.
std::vector<Tensor> small_weights(Tape& tape, const std::string& name, const MambaShape& shape) {
  std::vector<Tensor> weights{
      tape.parameter(name + ".conv1d.weight", {shape.convolved(), kConvolution}),
      tape.parameter(name + ".conv1d.bias", {shape.convolved()}),
      tape.parameter(name + ".A_log", {shape.heads}), tape.parameter(name + ".D", {shape.heads}),
      tape.parameter(name + ".dt_bias", {shape.heads})};
  if (shape.normed) weights.push_back(tape.parameter(name + ".norm.weight", {shape.inner()}));
  return weights;
}

}  // namespace

Tensor mamba_scan(Tape& tape, const std::string& name, const Tensor& projected,
                  const MambaShape& shape) {
  const std::vector<Tensor> weights = small_weights(tape, name, shape);
  Scan scan(name, shape);
  scan.states(tape, projected);
  const Tensor y = scan.outputs(tape, projected);
  const std::string last = name + (shape.normed ? ".norm" : ".gate");
  const Tensor out = tape.make(last, y.shape, y.precision);
  const Kernel kernel =
      pointwise_kernel(out, 8, shape.normed ? KernelKind::layer_norm : KernelKind::elementwise);
  tape.launch(last, kernel, {y, projected}, {out});
  std::vector<Tensor> inputs{projected};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  tape.differentiable(inputs, std::span(&out, 1), [=](Tape& t, auto gradients) {
    const Tensor grad_y = t.make(last + ".grad", y.shape, y.precision);
    t.launch(last + ".backward", kernel, {gradients[0], y, projected}, {grad_y});
    for (const Tensor& weight : weights) {
      const Tensor grad = t.make(t.name_of(weight) + ".grad", weight.shape, weight.precision);
      t.launch(t.name_of(weight) + ".sum", reduction_kernel(grad_y), {grad}, {grad});
      t.add_gradient(weight, grad);
    }
    t.add_gradient(projected, Scan(name, shape).backward(t, projected, grad_y));
  });
  return out;
}

}  // namespace tessera
