#include "workloads/ops/states/delta_net.h"

#include <span>
#include <utility>
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/chunk_kernels.h"

namespace tessera {
namespace {

constexpr std::int64_t kDeltaTaps = 4;

/// Tensors of the rule, the same in both directions.
class DeltaRule : private ChunkKernels {
 public:
  DeltaRule(std::string name, DeltaOperands operands, const DeltaShape& shape)
      : ChunkKernels(std::move(name), shape), in_(std::move(operands)) {}

  /// Running sums of the decay and the solved triangles, which backward reads.
  void prepare(Tape& tape) {
    sums_ = make(tape, ".sums", in_.decay.sizes(), Precision::fp32);
    launch(tape, ".cumsum", sums_, 1, {in_.decay});
    const Tensor pairs = make(tape, ".pairs", triangle(), Precision::fp32);
    multiply(tape, ".kkt", in_chunks(kChunk, key()), {in_.k, sums_, in_.step}, {pairs});
    solved_ = make(tape, ".solved", triangle(), tape.precision());
    solve(tape, pairs, solved_);
  }
  /// What each chunk erases and writes, then the states from chunk to chunk.
  void states(Tape& tape, const char* again) {
    const std::string suffix = again;
    erased_ = make(tape, ".erased" + suffix, {rows(), key()}, tape.precision());
    written_ = make(tape, ".written" + suffix, {rows(), value()}, tape.precision());
    multiply(tape, ".wy", in_chunks(key() + value(), kChunk),
             {solved_, in_.k, in_.v, in_.step, sums_}, {erased_, written_});
    states_ = make(tape, ".states" + suffix, {chunks(), key() * value()}, tape.precision());
    changed_ = make(tape, ".changed" + suffix, {rows(), value()}, tape.precision());
    multiply(tape, ".states", chain(2), {in_.k, erased_, written_, sums_}, {states_, changed_});
  }
  Tensor outputs(Tape& tape) const {
    const Tensor out = make(tape, "", in_.v.sizes(), tape.precision());
    const std::int64_t macs = key() + kChunk * key() / value() + kChunk;
    multiply(tape, ".output", in_chunks(value(), macs), {in_.q, in_.k, changed_, states_, sums_},
             {out});
    return out;
  }
  void backward(Tape& tape, const Tensor& gradient) {
    states(tape, ".again");
    const Tensor of_v = like(tape, in_.v), of_q = like(tape, in_.q), of_k = like(tape, in_.k);
    const Tensor of_sums = like(tape, sums_), of_step = like(tape, in_.step);
    const std::int64_t c = kChunk;
    multiply(tape, ".dv_local", in_chunks(value(), c * key() / value() + c),
             {in_.q, in_.k, sums_, gradient}, {of_v});
    const Tensor of_states = like(tape, states_), all_v = like(tape, of_v);
    multiply(tape, ".dstates", chain(3), {in_.q, in_.k, erased_, sums_, gradient, of_v},
             {of_states, all_v});
    const Tensor of_erased = like(tape, erased_);
    multiply(tape, ".dqkw", in_chunks(key(), 3 * value() + c * value() / key() + 2 * c),
             {in_.q, in_.k, changed_, erased_, sums_, states_, all_v, gradient, of_states},
             {of_q, of_k, of_erased, of_sums});
    const Tensor more_k = like(tape, of_k), more_sums = like(tape, of_sums);
    multiply(tape, ".wy.backward", in_chunks(c, 2 * value() + 5 * key() + 2 * c),
             {in_.k, in_.v, in_.step, sums_, solved_, of_erased, all_v},
             {more_k, of_v, of_step, more_sums});
    add_in_place(tape, name() + ".k.join", of_k, more_k);
    add_in_place(tape, name() + ".sums.join", of_sums, more_sums);
    const Tensor of_decay = like(tape, in_.decay);
    launch(tape, ".cumsum.backward", of_decay, 1, {of_sums});
    for (const auto& [operand, found] :
         {std::pair{in_.q, of_q}, std::pair{in_.k, of_k}, std::pair{in_.v, of_v},
          std::pair{in_.decay, of_decay}, std::pair{in_.step, of_step}})
      tape.add_gradient(operand, found);
  }

 private:
  DeltaOperands in_;
  Tensor sums_, solved_, erased_, written_, changed_, states_;
};

}  // namespace

Tensor causal_convolution(Tape& tape, const std::string& name, const Tensor& x,
                          std::int64_t channels, bool biased) {
  std::vector<Tensor> weights{tape.parameter(name + ".weight", {channels, kDeltaTaps})};
  if (biased) weights.push_back(tape.parameter(name + ".bias", {channels}));
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, pointwise_kernel(out, 2 * kDeltaTaps + 5), inputs, std::vector{out});
  tape.differentiable(inputs, std::span(&out, 1), [=](Tape& t, auto gradients) {
    std::vector<Tensor> read{gradients[0], x, weights[0]};
    std::vector<Tensor> made{t.make(name + ".grad", x.shape.dense(), x.precision)};
    for (const Tensor& weight : weights)
      made.push_back(t.make(t.name_of(weight) + ".grad", weight.shape, weight.precision));
    t.launch(name + ".backward", pointwise_kernel(made[0], 4 * kDeltaTaps + 10), read, made);
    for (std::size_t i = 0; i < inputs.size(); ++i) t.add_gradient(inputs[i], made[i]);
  });
  return out;
}

Tensor unit_rows(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  const Tensor lengths =
      tape.make(name + ".lengths", StridedShape({x.elements() / x.shape.last()}), Precision::fp32);
  tape.launch(name, pointwise_kernel(out, 4, KernelKind::layer_norm), {x}, {out, lengths});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 6, KernelKind::layer_norm),
             {gradients[0], out, lengths}, {grad});
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor log_decay(Tape& tape, const std::string& name, const Tensor& x) {
  const std::int64_t heads = x.shape.last();
  const Tensor rate = tape.parameter(name + ".A_log", {heads});
  const Tensor bias = tape.parameter(name + ".dt_bias", {heads});
  const Tensor exact = cast(tape, name + ".float", x, Precision::fp32);
  const Tensor soft = silu(tape, name + ".softplus", add(tape, name + ".bias", exact, bias));
  // exp saves what it gives, as tanh does.
  const Tensor speed = negate(tape, name + ".neg", tanh(tape, name + ".exp", rate));
  return multiply(tape, name + ".scale", speed, soft);
}

Tensor gated_delta_rule(Tape& tape, const std::string& name, const DeltaOperands& operands,
                        const DeltaShape& shape) {
  DeltaRule rule(name, operands, shape);
  rule.prepare(tape);
  rule.states(tape, "");
  const Tensor out = rule.outputs(tape);
  const DeltaOperands& in = operands;
  tape.differentiable({in.q, in.k, in.v, in.decay, in.step}, out, [rule](Tape& t, auto gradients) {
    DeltaRule(rule).backward(t, gradients[0]);
  });
  return out;
}

}  // namespace tessera
