#include "workloads/ops/delta_net.h"

#include <utility>
#include <vector>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

constexpr std::int64_t kDeltaChunk = 64;  // positions; chunk_gated_delta_rule, chunk_size
constexpr std::int64_t kDeltaTaps = 4;
constexpr std::int64_t kSolvedBlock = 16;  // rows; solve_tril

/// Products of one kernel: `macs` multiply-adds for each of `batch` results of m x n.
struct DeltaProducts {
  std::int64_t batch, m, n, macs;
};

/// Tensors of the rule, the same in both directions.
class DeltaRule {
 public:
  DeltaRule(std::string name, DeltaOperands operands, const DeltaShape& shape)
      : name_(std::move(name)), in_(std::move(operands)), shape_(shape) {}

  /// Running sums of the decay and the solved triangles, which backward reads.
  void prepare(Tape& tape) {
    sums_ = make(tape, ".sums", in_.decay.sizes(), Precision::fp32);
    launch(tape, ".cumsum", sums_, 1, {in_.decay});
    const Tensor pairs = make(tape, ".pairs", triangle(), Precision::fp32);
    multiply(tape, ".kkt", inside(key()), {in_.k, sums_, in_.step}, {pairs});
    solved_ = make(tape, ".solved", triangle(), tape.precision());
    const Tensor blocks = make(tape, ".blocks", {rows(), kSolvedBlock}, Precision::fp32);
    launch(tape, ".solve_blocks", blocks, kSolvedBlock, {pairs});
    multiply(tape, ".solve_merge", inside(kDeltaChunk / 2), {blocks, pairs}, {solved_});
  }
  /// What each chunk erases and writes, then the states from chunk to chunk.
  void states(Tape& tape, const char* again) {
    const std::string suffix = again;
    erased_ = make(tape, ".erased" + suffix, {rows(), key()}, tape.precision());
    written_ = make(tape, ".written" + suffix, {rows(), value()}, tape.precision());
    multiply(tape, ".wy", {chunks(), kDeltaChunk, key() + value(), kDeltaChunk},
             {solved_, in_.k, in_.v, in_.step, sums_}, {erased_, written_});
    states_ = make(tape, ".states" + suffix, {chunks(), key() * value()}, tape.precision());
    changed_ = make(tape, ".changed" + suffix, {rows(), value()}, tape.precision());
    multiply(tape, ".states", chain(2), {in_.k, erased_, written_, sums_}, {states_, changed_});
  }
  Tensor outputs(Tape& tape) const {
    const Tensor out = tape.make(name_, StridedShape(in_.v.sizes()), tape.precision());
    const std::int64_t macs = key() + kDeltaChunk * key() / value() + kDeltaChunk;
    multiply(tape, ".output", {chunks(), kDeltaChunk, value(), macs},
             {in_.q, in_.k, changed_, states_, sums_}, {out});
    return out;
  }
  void backward(Tape& tape, const Tensor& gradient) {
    states(tape, ".again");
    const Tensor of_v = like(tape, in_.v), of_q = like(tape, in_.q), of_k = like(tape, in_.k);
    const Tensor of_sums = like(tape, sums_), of_step = like(tape, in_.step);
    const std::int64_t c = kDeltaChunk;
    multiply(tape, ".dv_local", {chunks(), c, value(), c * key() / value() + c},
             {in_.q, in_.k, sums_, gradient}, {of_v});
    const Tensor of_states = like(tape, states_), all_v = like(tape, of_v);
    multiply(tape, ".dstates", chain(3), {in_.q, in_.k, erased_, sums_, gradient, of_v},
             {of_states, all_v});
    const Tensor of_erased = like(tape, erased_);
    multiply(tape, ".dqkw", {chunks(), c, key(), 3 * value() + c * value() / key() + 2 * c},
             {in_.q, in_.k, changed_, erased_, sums_, states_, all_v, gradient, of_states},
             {of_q, of_k, of_erased, of_sums});
    const Tensor more_k = like(tape, of_k), more_sums = like(tape, of_sums);
    multiply(tape, ".wy.backward", {chunks(), c, c, 2 * value() + 5 * key() + 2 * c},
             {in_.k, in_.v, in_.step, sums_, solved_, of_erased, all_v},
             {more_k, of_v, of_step, more_sums});
    add_in_place(tape, name_ + ".k.join", of_k, more_k);
    add_in_place(tape, name_ + ".sums.join", of_sums, more_sums);
    const Tensor of_decay = like(tape, in_.decay);
    launch(tape, ".cumsum.backward", of_decay, 1, {of_sums});
    for (const auto& [operand, found] :
         {std::pair{in_.q, of_q}, std::pair{in_.k, of_k}, std::pair{in_.v, of_v},
          std::pair{in_.decay, of_decay}, std::pair{in_.step, of_step}})
      tape.add_gradient(operand, found);
  }

 private:
  std::int64_t key() const { return shape_.key_dim; }
  std::int64_t value() const { return shape_.value_dim; }
  std::int64_t rows() const { return shape_.sequences * shape_.positions * shape_.heads; }
  std::int64_t chunks() const {
    return shape_.sequences * shape_.heads * ((shape_.positions + kDeltaChunk - 1) / kDeltaChunk);
  }
  Sizes triangle() const { return {rows(), kDeltaChunk}; }
  /// A product per chunk of pairs of positions.
  DeltaProducts inside(std::int64_t depth) const {
    return {chunks(), kDeltaChunk, kDeltaChunk, depth};
  }
  /// `products` over all positions of a sequence, whose chunks wait for each other.
  DeltaProducts chain(std::int64_t products) const {
    return {shape_.sequences * shape_.heads, key(), value(), products * shape_.positions};
  }

  Tensor make(Tape& tape, const std::string& part, const Sizes& sizes, Precision precision) const {
    return tape.make(name_ + part, StridedShape(sizes), precision);
  }
  Tensor like(Tape& tape, const Tensor& x) const {
    return tape.make(tape.name_of(x) + ".grad", x.shape.dense(), x.precision);
  }
  void launch(Tape& tape, const char* part, const Tensor& out, double flops,
              const std::vector<Tensor>& reads) const {
    tape.launch(name_ + part, pointwise_kernel(out, flops), reads, std::vector{out});
  }
  void multiply(Tape& tape, const char* part, const DeltaProducts& p,
                const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) const {
    Kernel kernel;
    kernel.kind = KernelKind::batched_gemm;
    kernel.precision = tape.precision();
    kernel.batch = p.batch;
    kernel.m = p.m;
    kernel.n = p.n;
    kernel.k = p.macs;
    kernel.flops = Flops(2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * static_cast<double>(p.macs));
    tape.launch(name_ + part, kernel, reads, writes);
  }

  std::string name_;
  DeltaOperands in_;
  DeltaShape shape_;
  Tensor sums_, solved_, erased_, written_, changed_, states_;
};

}  // namespace

Tensor causal_convolution(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor weight = tape.parameter(name + ".weight", {x.sizes()[1], kDeltaTaps});
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, pointwise_kernel(out, 2 * kDeltaTaps + 5), {x, weight}, {out});
  tape.differentiable({x, weight}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    const Tensor of_weight = t.make(name + ".weight.grad", weight.shape, weight.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 4 * kDeltaTaps + 10),
             {gradients[0], x, weight}, {grad, of_weight});
    t.add_gradient(x, grad);
    t.add_gradient(weight, of_weight);
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
