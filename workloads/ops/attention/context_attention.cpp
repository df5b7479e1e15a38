#include "workloads/ops/attention/context_attention.h"

#include "workloads/ops/pointwise.h"
#include "workloads/ops/transformer.h"

namespace tessera {
namespace {

Access part_of(const Tensor& tensor, std::int64_t parts) {
  return {tensor.storage, Bytes(tensor.traffic().value() / parts)};
}

/// Attention of one rank over keys and values that come in parts.
class DistributedAttention {
 public:
  DistributedAttention(std::string name, const Tensor& q, const Tensor& k, const Tensor& v,
                       AttentionCall call, int ranks)
      : name_(std::move(name)), q_(q), k_(k), v_(v), call_(call), ranks_(ranks) {
    call_.batch = q.sizes()[0];
    call_.heads = q.sizes()[1];
    call_.kv_heads = k.sizes()[1];
    call_.seq_q = call_.seq_kv = q.sizes()[2];
    call_.head_dim = q.sizes()[3];
    if (v.sizes()[3] != call_.head_dim) call_.value_dim = v.sizes()[3];
    call_.direction = AttentionDirection::forward;
  }

  Tensor ring(Tape& tape) const;
  Tensor gathered(Tape& tape) const;

 private:
  /// Keys and values of one rank behind each other, `times` over.
  Tensor make_pair(Tape& tape, const std::string& name, std::int64_t times = 1) const {
    return tape.make(name, StridedShape({times * (k_.elements() + v_.elements())}), k_.precision);
  }
  Tensor packed(Tape& tape, const std::string& name) const {
    const Tensor pair = make_pair(tape, name);
    tape.launch(name, pointwise_kernel(pair, 0, KernelKind::copy), {k_, v_}, {pair});
    return pair;
  }
  Tensor make_output(Tape& tape, const std::string& name) const {
    return tape.make(name, attention_output_shape(q_, v_), q_.precision);
  }
  Tensor make_queries(Tape& tape, const std::string& name) const {
    return tape.make(name, q_.shape.dense(), q_.precision);
  }
  Tensor make_sums(Tape& tape, const std::string& name) const {
    return tape.make(name, StridedShape({call_.batch, call_.heads, call_.seq_q}), Precision::fp32);
  }
  /// The rank's own part is causal; of another part one half is seen by all queries, or all by one
  /// half of the queries.
  AttentionCall call_of_step(int step, AttentionDirection direction) const {
    AttentionCall call = call_;
    call.direction = direction;
    if (step == 0) return call;
    call.causal = false;
    call.seq_kv = call_.seq_kv / 2;
    return call;
  }
  /// One of the rank's two pieces: of the keys in sight of both pieces together, which are the
  /// whole sequence, half.
  AttentionCall call_of_piece(AttentionDirection direction) const {
    AttentionCall call = call_;
    call.direction = direction;
    call.causal = false;
    call.seq_q = call_.seq_q / 2;
    call.seq_kv = call_.seq_kv * ranks_ / 2;
    return call;
  }
  void ring_backward(Tape& tape, const Tensor& gradient, const Tensor& pair, const Tensor& out,
                     const Tensor& sums) const;
  void gathered_backward(Tape& tape, const Tensor& gradient, const Tensor& out,
                         const Tensor& sums) const;
  void give_gradients(Tape& tape, const Tensor& grad_q, const Tensor& pair) const;

  std::string name_;
  Tensor q_, k_, v_;
  AttentionCall call_;
  int ranks_;
};

Tensor DistributedAttention::ring(Tape& tape) const {
  const Tensor own = packed(tape, name_ + ".pack");
  std::vector<Tensor> outputs;
  std::vector<Tensor> sums;
  Tensor pair = own;
  for (int step = 0; step < ranks_; ++step) {
    const bool sends = step + 1 < ranks_;
    const Tensor next = sends ? make_pair(tape, name_ + ".pair") : Tensor();
    if (sends)
      tape.collective(OpKind::ring_shift, name_ + ".shift", GroupKind::context, pair, next);
    const AttentionCall call = call_of_step(step, AttentionDirection::forward);
    outputs.push_back(make_output(tape, name_ + ".part"));
    sums.push_back(make_sums(tape, name_ + ".part_sums"));
    tape.launch_partial(name_, attention_kernel(q_, call),
                        {whole(q_), part_of(pair, step == 0 ? 1 : 2)},
                        {whole(outputs.back()), whole(sums.back())});
    if (sends) tape.wait();
    pair = next;
  }
  const Tensor out = make_output(tape, name_ + ".output");
  const Tensor sum = make_sums(tape, name_ + ".log_sum_exp");
  for (std::size_t step = 0; step < outputs.size(); ++step) {
    const std::vector<Tensor> first{outputs[step], sums[step]};
    const std::vector<Tensor> later{outputs[step], sums[step], out, sum};
    tape.launch(name_ + ".correction", pointwise_kernel(out, 4), step == 0 ? first : later,
                std::vector{out, sum});
  }
  tape.differentiable({q_, k_, v_}, out, [=, self = *this](Tape& t, auto gradients) {
    self.ring_backward(t, gradients[0], own, out, sum);
  });
  return out;
}

// Keys and values leave while the kernel reads them; the gradients that the ranks before have
// summed follow a step behind.
void DistributedAttention::ring_backward(Tape& tape, const Tensor& gradient, const Tensor& own,
                                         const Tensor& out, const Tensor& sums) const {
  Tensor pair = own;
  Tensor grad_q;
  Tensor grad_pair;
  for (int step = 0; step < ranks_; ++step) {
    const bool first = step == 0;
    const bool last = step + 1 == ranks_;
    const Tensor next = make_pair(tape, name_ + ".pair", first || last ? 1 : 2);
    Tensor sent = last ? grad_pair : pair;  // at last the gradients alone
    if (last) sent.shape = own.shape;
    tape.collective(OpKind::ring_shift, name_ + ".backward.shift", GroupKind::context, sent, next);
    const AttentionCall call = call_of_step(step, AttentionDirection::backward);
    const Tensor part_q = make_queries(tape, name_ + ".grad_q");
    const Tensor part_pair = make_pair(tape, name_ + ".grad_pair");
    tape.launch_partial(name_ + ".backward", attention_kernel(q_, call),
                        {whole(gradient),
                         whole(q_),
                         {pair.storage, Bytes(own.traffic().value() / (first ? 1 : 2))},
                         whole(out),
                         whole(sums)},
                        {whole(part_q), part_of(part_pair, first ? 1 : 2)});
    tape.wait();
    if (first) {
      grad_q = part_q;
    } else {
      tape.launch(name_ + ".grad_q.add", pointwise_kernel(part_q, 1), {grad_q, part_q}, {grad_q});
      tape.launch(name_ + ".grad_pair.add", pointwise_kernel(part_pair, 1), {next, part_pair},
                  {next});
    }
    grad_pair = first ? part_pair : next;
    pair = next;
  }
  give_gradients(tape, grad_q, grad_pair);
}

void DistributedAttention::give_gradients(Tape& tape, const Tensor& grad_q,
                                          const Tensor& pair) const {
  const Tensor grad_k = tape.make(name_ + ".grad_k", k_.shape.dense(), k_.precision);
  const Tensor grad_v = tape.make(name_ + ".grad_v", v_.shape.dense(), v_.precision);
  tape.launch_partial(name_ + ".unpack", pointwise_kernel(pair, 0, KernelKind::copy),
                      {{pair.storage, grad_k.traffic() + grad_v.traffic()}},
                      {whole(grad_k), whole(grad_v)});
  tape.add_gradient(q_, grad_q);
  tape.add_gradient(k_, grad_k);
  tape.add_gradient(v_, grad_v);
}

Tensor DistributedAttention::gathered(Tape& tape) const {
  const Tensor own = packed(tape, name_ + ".pack");
  const Tensor all = make_pair(tape, name_ + ".gathered", ranks_);
  tape.collective(OpKind::all_gather, name_ + ".gather", GroupKind::context, own, all);
  tape.wait();
  const Tensor out = make_output(tape, name_ + ".output");
  const Tensor sums = make_sums(tape, name_ + ".log_sum_exp");
  for (int piece = 0; piece < 2; ++piece) {
    tape.launch_partial(name_, attention_kernel(q_, call_of_piece(AttentionDirection::forward)),
                        {part_of(q_, 2), part_of(all, 2)}, {part_of(out, 2), part_of(sums, 2)});
  }
  tape.differentiable({q_, k_, v_}, out, [=, self = *this](Tape& t, auto gradients) {
    self.gathered_backward(t, gradients[0], out, sums);
  });
  return out;
}

void DistributedAttention::gathered_backward(Tape& tape, const Tensor& gradient, const Tensor& out,
                                             const Tensor& sums) const {
  const Tensor own = packed(tape, name_ + ".backward.pack");
  const Tensor all = make_pair(tape, name_ + ".gathered", ranks_);
  tape.collective(OpKind::all_gather, name_ + ".backward.gather", GroupKind::context, own, all);
  tape.wait();
  const Tensor grad_q = make_queries(tape, name_ + ".grad_q");
  const Tensor grad_all = make_pair(tape, name_ + ".grad_gathered", ranks_);
  for (int piece = 0; piece < 2; ++piece) {
    tape.launch_partial(
        name_ + ".backward", attention_kernel(q_, call_of_piece(AttentionDirection::backward)),
        {part_of(gradient, 2), part_of(q_, 2), part_of(all, 2), part_of(out, 2), part_of(sums, 2)},
        {part_of(grad_q, 2), part_of(grad_all, 2)});
  }
  const Tensor grad_pair = make_pair(tape, name_ + ".grad_pair");
  tape.collective(OpKind::reduce_scatter, name_ + ".backward.reduce_scatter", GroupKind::context,
                  grad_all, grad_pair);
  tape.wait();
  give_gradients(tape, grad_q, grad_pair);
}

Tensor copied(Tape& tape, const std::string& name, const Tensor& x, const Sizes& sizes) {
  const Tensor copy = tape.make(name, StridedShape(sizes), x.precision);
  tape.launch(name, pointwise_kernel(copy, 0, KernelKind::copy), {x}, {copy});
  return copy;
}

/// The same elements in other sizes, by way of the other ranks.
Tensor traded(Tape& tape, const std::string& name, const Tensor& x, const Sizes& sizes) {
  const Tensor sent = copied(tape, name + ".order", x, x.sizes());
  const Tensor received = tape.make(name, sent.shape, x.precision);
  tape.collective(OpKind::all_to_all, name + ".all_to_all", GroupKind::context, sent, received);
  tape.wait();
  return copied(tape, name + ".restore", received, sizes);
}

Tensor trade(Tape& tape, const std::string& name, const Tensor& x, const Sizes& sizes) {
  const Tensor out = traded(tape, name, x, sizes);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, traded(t, name + ".backward", gradients[0], x.sizes()));
  });
  return out;
}

}  // namespace

Tensor ring_attention(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                      const Tensor& v, AttentionCall call, int ranks) {
  return DistributedAttention(name, q, k, v, call, ranks).ring(tape);
}

Tensor gathered_attention(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                          const Tensor& v, AttentionCall call, int ranks) {
  return DistributedAttention(name, q, k, v, call, ranks).gathered(tape);
}

Tensor sequence_to_heads(Tape& tape, const std::string& name, const Tensor& x, int ranks) {
  Sizes sizes = x.sizes();
  sizes[0] *= ranks;
  sizes[2] /= ranks;
  return trade(tape, name, x, sizes);
}

Tensor heads_to_sequence(Tape& tape, const std::string& name, const Tensor& x, int ranks) {
  Sizes sizes = x.sizes();
  sizes[0] /= ranks;
  sizes[2] *= ranks;
  return trade(tape, name, x, sizes);
}

}  // namespace tessera
