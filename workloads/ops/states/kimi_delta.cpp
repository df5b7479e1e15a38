#include "workloads/ops/states/kimi_delta.h"

#include <utility>
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/chunk_kernels.h"

namespace tessera {
namespace {

/// Tensors of the rule, the same in both directions.
class KimiRule : private ChunkKernels {
 public:
  KimiRule(std::string name, DeltaOperands operands, const DeltaShape& shape)
      : ChunkKernels(std::move(name), shape), in_(std::move(operands)) {}

  /// Running sums, pairs and solved triangles, which backward reads.
  void prepare(Tape& tape) {
    sums_ = make(tape, ".sums", in_.decay.sizes(), Precision::fp32);
    launch(tape, ".cumsum", sums_, 1, {in_.decay});
    seen_ = make(tape, ".seen", triangle(), Precision::fp32);
    const Tensor pairs = make(tape, ".pairs", triangle(), Precision::fp32);
    multiply(tape, ".intra", in_chunks(kPairs, 2 * key()), {in_.q, in_.k, sums_, in_.step},
             {seen_, pairs});
    solved_ = make(tape, ".solved", triangle(), tape.precision());
    solve(tape, pairs, solved_);
  }
  /// What each chunk erases and writes, its decayed keys (in backward queries as well), then the
  /// states from chunk to chunk.
  void states(Tape& tape, const std::string& again) {
    const auto of_keys = [&](const char* part) {
      return make(tape, part + again, {rows(), key()}, tape.precision());
    };
    erased_ = of_keys(".erased");
    keys_ = of_keys(".keys");
    written_ = make(tape, ".written" + again, {rows(), value()}, tape.precision());
    std::vector<Tensor> read{solved_, in_.k, in_.v, in_.step, sums_};
    std::vector<Tensor> made{erased_, written_, keys_};
    if (!again.empty()) {
      read.push_back(in_.q);
      made.push_back(queries_ = of_keys(".queries"));
    }
    multiply(tape, ".wy", in_chunks(key() + value(), kChunk), read, made);
    states_ = make(tape, ".states" + again, {chunks(), key() * value()}, tape.precision());
    changed_ = make(tape, ".changed" + again, {rows(), value()}, tape.precision());
    multiply(tape, ".states", chain(2), {keys_, erased_, written_, sums_}, {states_, changed_});
  }
  Tensor outputs(Tape& tape) const {
    const Tensor out = make(tape, "", in_.v.sizes(), tape.precision());
    multiply(tape, ".output", in_chunks(value(), key() + kChunk),
             {in_.q, changed_, states_, sums_, seen_}, {out});
    return out;
  }
  void backward(Tape& tape, const Tensor& gradient) {
    states(tape, ".again");
    const Tensor of_seen = like(tape, seen_), of_v = like(tape, in_.v);
    multiply(tape, ".dav", in_chunks(value(), 2 * kChunk), {changed_, seen_, gradient},
             {of_seen, of_v});
    const Tensor of_states = like(tape, states_), all_v = like(tape, of_v);
    multiply(tape, ".dstates", chain(3), {queries_, keys_, erased_, sums_, gradient, of_v},
             {of_states, all_v});
    const Tensor of_q = like(tape, in_.q), of_k = like(tape, in_.k);
    const Tensor of_erased = like(tape, erased_), of_sums = like(tape, sums_);
    multiply(tape, ".dqkw", in_chunks(key(), 3 * value()),
             {in_.q, in_.k, changed_, erased_, sums_, states_, all_v, gradient, of_states},
             {of_q, of_k, of_erased, of_sums});
    triangles_backward(tape, {of_q, of_k, of_v, of_sums, Tensor()}, of_erased, all_v, of_seen);
  }

 private:
  /// Results per position of a product of pairs: of a chunk's 16 blocks the 10 up to the diagonal.
  static constexpr std::int64_t kPairs = kChunk * 10 / 16;

  /// From what is erased and written to keys, values and steps, then from pairs to queries and
  /// keys; `found` are gradients so far, of sums in place of decays.
  void triangles_backward(Tape& tape, const DeltaOperands& found, const Tensor& of_erased,
                          const Tensor& of_written, const Tensor& of_seen) const {
    const Tensor more_k = like(tape, found.k), more_sums = like(tape, found.decay);
    const Tensor of_step = like(tape, in_.step);
    const Tensor of_pairs = make(tape, ".pairs.grad", triangle(), Precision::fp32);
    multiply(tape, ".wy.backward", in_chunks(kChunk, 2 * (key() + value() + kChunk)),
             {in_.k, in_.v, in_.step, sums_, solved_, of_erased, of_written},
             {more_k, found.v, of_step, more_sums, of_pairs});
    const Tensor all_q = like(tape, found.q), all_k = like(tape, found.k);
    const Tensor all_sums = like(tape, found.decay), all_steps = like(tape, of_step);
    multiply(tape, ".intra.backward", in_chunks(kPairs, 4 * key()),
             {in_.q, in_.k, sums_, in_.step, of_seen, of_pairs, found.q, found.k, more_k,
              found.decay, more_sums, of_step},
             {all_q, all_k, all_sums, all_steps});
    const Tensor of_decay = like(tape, in_.decay);
    launch(tape, ".cumsum.backward", of_decay, 1, {all_sums});
    for (const auto& [operand, gradient] :
         {std::pair{in_.q, all_q}, std::pair{in_.k, all_k}, std::pair{in_.v, found.v},
          std::pair{in_.decay, of_decay}, std::pair{in_.step, all_steps}})
      tape.add_gradient(operand, gradient);
  }

  DeltaOperands in_;
  Tensor sums_, seen_, solved_, erased_, written_, keys_, queries_, changed_, states_;
};

}  // namespace

Tensor channel_decay(Tape& tape, const std::string& name, const Tensor& x,
                     const DeltaShape& shape) {
  const Tensor rate = tape.parameter(name + ".A_log", {shape.heads});
  const Tensor bias = tape.parameter(name + ".dt_bias", {shape.values()});
  const Tensor out =
      tape.make(name, StridedShape({shape.sequences, shape.positions, shape.heads, shape.key_dim}),
                Precision::fp32);
  tape.launch(name, pointwise_kernel(out, 8), {x, rate, bias}, {out});
  tape.differentiable({x, rate, bias}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 14), {gradients[0], x, rate, bias}, {grad});
    t.add_gradient(x, grad);
    for (const Tensor& weight : {rate, bias}) {
      const Tensor sum = t.make(t.name_of(weight) + ".grad", weight.shape, weight.precision);
      t.launch(t.name_of(weight) + ".sum", reduction_kernel(grad), {grad}, {sum});
      t.add_gradient(weight, sum);
    }
  });
  return out;
}

Tensor gated_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& gate) {
  const Tensor weight = tape.parameter(name + ".weight", {x.shape.last()});
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  const Tensor factors = tape.make(name + ".statistics",
                                   StridedShape({x.elements() / x.shape.last()}), Precision::fp32);
  const auto kernel = [=](double flops) {
    return pointwise_kernel(x, flops, KernelKind::layer_norm);
  };
  tape.launch(name, kernel(9), {x, gate, weight}, {out, factors});
  tape.differentiable({x, gate, weight}, out, [=](Tape& t, auto gradients) {
    const Tensor grad_x = t.make(name + ".grad", x.shape.dense(), x.precision);
    const Tensor grad_gate = t.make(name + ".gate.grad", gate.shape.dense(), gate.precision);
    t.launch(name + ".backward", kernel(18), {gradients[0], x, gate, factors, weight},
             {grad_x, grad_gate});
    t.add_gradient(x, grad_x);
    t.add_gradient(gate, grad_gate);
    const Tensor grad_weight = t.make(name + ".weight.grad", weight.shape, weight.precision);
    t.launch(name + ".weight.sum", reduction_kernel(weight), {weight}, {grad_weight});
    t.add_gradient(weight, grad_weight);
  });
  return out;
}

Tensor kimi_delta_rule(Tape& tape, const std::string& name, const DeltaOperands& operands,
                       const DeltaShape& shape) {
  KimiRule rule(name, operands, shape);
  rule.prepare(tape);
  rule.states(tape, "");
  const Tensor out = rule.outputs(tape);
  const DeltaOperands& in = operands;
  tape.differentiable({in.q, in.k, in.v, in.decay, in.step}, out, [rule](Tape& t, auto gradients) {
    KimiRule(rule).backward(t, gradients[0]);
  });
  return out;
}

}  // namespace tessera
