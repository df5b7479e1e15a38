#include "workloads/ops/attention/ring_parts.h"

#include <utility>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/transformer.h"

namespace tessera {
namespace {

class PartAttention {
 public:
  PartAttention(std::string name, const Tensor& q, const Tensor& k, const Tensor& v,
                AttentionCall call, int ranks, PartRotation rotation)
      : name_(std::move(name)), q_(q), k_(k), v_(v), call_(call), ranks_(ranks), way_(rotation) {
    call_.batch = q.sizes()[0];
    call_.heads = q.sizes()[1];
    call_.kv_heads = k.sizes()[1];
    call_.seq_q = call_.seq_kv = q.sizes()[2];
    call_.head_dim = q.sizes()[3];
  }

  Tensor forward(Tape& tape) const;

 private:
  std::int64_t pair_elements() const { return k_.elements() + v_.elements(); }
  Tensor make_pair(Tape& tape, const std::string& name, Precision precision, int times = 1) const {
    return tape.make(name, StridedShape({times * pair_elements()}), precision);
  }
  Tensor packed(Tape& tape, const std::string& name) const {
    const Tensor pair = make_pair(tape, name, k_.precision);
    tape.launch(name, pointwise_kernel(pair, 0, KernelKind::copy), {k_, v_}, {pair});
    return pair;
  }
  Tensor of_queries(Tape& tape, const std::string& name, Precision precision) const {
    return tape.make(name, q_.shape.dense(), precision);
  }
  Tensor sums(Tape& tape, const std::string& name) const {
    return tape.make(name, StridedShape({call_.batch, call_.heads, call_.seq_q}), Precision::fp32);
  }
  AttentionCall call_of_step(int step, AttentionDirection direction) const {
    AttentionCall call = call_;
    call.direction = direction;
    if (step == 0) return call;
    call.causal = false;
    call.seq_kv = call_.seq_kv / 2;
    return call;
  }
  /// Keys and values that step `step` works on, half of them beyond the first.
  Access part(const Tensor& pair, int step) const {
    const Bytes bytes(element_bytes(k_.precision) * pair_elements() / (step == 0 ? 1 : 2));
    return {pair.storage, bytes};
  }
  Tensor start(Tape& tape, const std::string& name, const Tensor& pair, int step) const;
  void merge(Tape& tape, const Tensor& block, const Tensor& block_sums, const Tensor& out,
             const Tensor& out_sums, bool first) const;
  void backward(Tape& tape, const Tensor& gradient, const Tensor& out, const Tensor& lse) const;
  Tensor cast_to(Tape& tape, const std::string& name, const Tensor& x, Precision precision) const {
    const Tensor out = tape.make(name, x.shape, precision);
    tape.launch(name, pointwise_kernel(out, 0), {x}, {out});
    return out;
  }

  std::string name_;
  Tensor q_, k_, v_;
  AttentionCall call_;
  int ranks_;
  PartRotation way_;
};

/// The pair of the next step, on its way behind `step`; where all come at once, from the first on.
Tensor PartAttention::start(Tape& tape, const std::string& name, const Tensor& pair,
                            int step) const {
  if (step + 1 == ranks_) return pair;
  if (way_ == PartRotation::all_gather) {
    if (step > 0) return pair;
    const Tensor all = make_pair(tape, name + ".gathered", k_.precision, ranks_);
    tape.collective(OpKind::all_gather, name + ".gather", GroupKind::context, pair, all);
    return all;
  }
  const Tensor next = make_pair(tape, name + ".pair", k_.precision);
  tape.collective(OpKind::ring_shift, name + ".shift", GroupKind::context, pair, next);
  return next;
}

/// out - sigmoid(block_lse - lse) (out - block_out), in place of out.
void PartAttention::merge(Tape& tape, const Tensor& block, const Tensor& block_sums,
                          const Tensor& out, const Tensor& out_sums, bool first) const {
  const std::string name = name_ + ".merge";
  if (first) return tape.launch(name, pointwise_kernel(out, 0), {block}, {out});
  const Tensor wide = cast_to(tape, name, block, Precision::fp32);
  const Tensor difference = map(tape, name, {out, wide});
  tape.launch(name, pointwise_kernel(out, 3), {difference, block_sums, out_sums}, {difference});
  tape.launch(name, pointwise_kernel(out, 1), {out, difference}, {out});
  tape.launch(name, pointwise_kernel(out_sums, 3), {block_sums, out_sums}, {out_sums});
}

Tensor PartAttention::forward(Tape& tape) const {
  Tensor pair = packed(tape, name_ + ".pack");
  const Tensor merged = of_queries(tape, name_ + ".merged", Precision::fp32);
  const Tensor lse = sums(tape, name_ + ".log_sum_exp");
  for (int step = 0; step < ranks_; ++step) {
    const Tensor next = start(tape, name_, pair, step);
    const bool waits = next.storage != pair.storage;
    const Tensor block = of_queries(tape, name_ + ".part", q_.precision);
    const Tensor block_sums = step == 0 ? lse : sums(tape, name_ + ".part_sums");
    const AttentionCall call = call_of_step(step, AttentionDirection::forward);
    tape.launch_partial(name_, attention_kernel(q_, call), {whole(q_), part(pair, step)},
                        {whole(block), whole(block_sums)});
    merge(tape, block, block_sums, merged, lse, step == 0);
    if (waits) tape.wait();
    pair = next;
  }
  const Tensor out = cast_to(tape, name_ + ".output", merged, q_.precision);
  tape.differentiable({q_, k_, v_}, out, [=, self = *this](Tape& t, auto gradients) {
    self.backward(t, gradients[0], out, lse);
  });
  return out;
}

/// Keys and values leave ahead of a step's kernel, gradients of them behind it.
void PartAttention::backward(Tape& tape, const Tensor& gradient, const Tensor& out,
                             const Tensor& lse) const {
  Tensor pair = packed(tape, name_ + ".backward.pack");
  const Tensor grad_q = of_queries(tape, name_ + ".grad_q.sum", Precision::fp32);
  const Tensor grad_pair = make_pair(tape, name_ + ".grad_pair.sum", Precision::fp32);
  for (int step = 0; step < ranks_; ++step) {
    const Tensor next = start(tape, name_ + ".backward", pair, step);
    const Tensor part_q = of_queries(tape, name_ + ".grad_q", q_.precision);
    const Tensor part_pair = make_pair(tape, name_ + ".grad_pair", k_.precision);
    const AttentionCall call = call_of_step(step, AttentionDirection::backward);
    tape.launch_partial(name_ + ".backward", attention_kernel(q_, call),
                        {whole(gradient), whole(q_), part(pair, step), whole(out), whole(lse)},
                        {whole(part_q), part(part_pair, step)});
    if (step > 0 || next.storage != pair.storage) tape.wait();
    const auto add = [&](const char* name, const Tensor& sum, const Tensor& share) {
      const std::vector<Tensor> reads = step == 0 ? std::vector{share} : std::vector{sum, share};
      tape.launch(name_ + name, pointwise_kernel(sum, 1), reads, std::vector{sum});
    };
    add(".grad_q.add", grad_q, part_q);
    add(".grad_pair.add", grad_pair, part_pair);
    tape.collective(OpKind::ring_shift, name_ + ".grad.shift", GroupKind::context, grad_pair,
                    grad_pair);
    pair = next;
  }
  tape.wait();
  const Tensor halves = cast_to(tape, name_ + ".grad_pair.cast", grad_pair, k_.precision);
  tape.add_gradient(q_, cast_to(tape, name_ + ".grad_q.cast", grad_q, q_.precision));
  tape.add_gradient(k_, tape.alias(halves, k_.shape.dense()));
  tape.add_gradient(v_, tape.alias(halves, v_.shape.dense()));
}

}  // namespace

Tensor attention_by_parts(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                          const Tensor& v, AttentionCall call, int ranks, PartRotation rotation) {
  return PartAttention(name, q, k, v, call, ranks, rotation).forward(tape);
}

}  // namespace tessera
