#include "workloads/ops/transformer.h"

#include <span>
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/python_calls.h"

namespace tessera {
namespace {

Access half_of(const Tensor& tensor) {
  return {tensor.storage, Bytes(tensor.traffic().value() / 2)};
}

}  // namespace

Kernel attention_kernel(const Tensor& q, const AttentionCall& call) {
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = q.precision;
  kernel.attention = call;
  kernel.flops = Flops(attention_flops(call));
  return kernel;
}

StridedShape attention_output_shape(const Tensor& q, const Tensor& v) {
  const bool same = q.shape.last() == v.shape.last();
  return same ? q.shape.dense() : q.shape.narrowed(3, v.shape.last()).dense();
}

Tensor fused_attention(Tape& tape, const std::string& name, const Tensor& q, const Tensor& k,
                       const Tensor& v, AttentionCall call, const std::optional<Tensor>& sinks) {
  call.batch = q.sizes()[0];
  call.heads = q.sizes()[1];
  call.kv_heads = k.sizes()[1];
  call.seq_q = q.sizes()[2];
  call.seq_kv = k.sizes()[2];
  call.head_dim = q.sizes()[3];
  if (v.sizes()[3] != call.head_dim) call.value_dim = v.sizes()[3];
  call.direction = AttentionDirection::forward;
  const Tensor out = tape.make(name, attention_output_shape(q, v), q.precision);
  const Tensor sums = tape.make(
      name + ".log_sum_exp", StridedShape({call.batch, call.heads, call.seq_q}), Precision::fp32);
  std::vector<Tensor> inputs{q, k, v};
  if (sinks) inputs.push_back(*sinks);
  tape.launch(name, attention_kernel(q, call), inputs, std::vector{out, sums});
  tape.python_calls(kAttentionForward);
  tape.differentiable(inputs, std::span(&out, 1), [=](Tape& t, auto gradients) {
    const auto gradient_of = [&](const Tensor& x, const char* suffix) {
      return t.make(name + suffix, x.shape.dense(), x.precision);
    };
    const Tensor grad_q = gradient_of(q, ".grad_q");
    const Tensor grad_k = gradient_of(k, ".grad_k");
    const Tensor grad_v = gradient_of(v, ".grad_v");
    AttentionCall backward = call;
    backward.direction = AttentionDirection::backward;
    t.launch(name + ".backward", attention_kernel(q, backward), {gradients[0], q, k, v, out, sums},
             {grad_q, grad_k, grad_v});
    t.python_calls(kAttentionBackward);
    t.add_gradient(q, grad_q);
    t.add_gradient(k, grad_k);
    t.add_gradient(v, grad_v);
    if (!sinks || !t.requires_gradient(*sinks)) return;
    const Tensor grad_sinks = t.make(name + ".sinks.grad", sinks->shape, sinks->precision);
    t.launch(name + ".sinks.backward", reduction_kernel(sums), {sums, *sinks}, {grad_sinks});
    t.add_gradient(*sinks, grad_sinks);
  });
  return out;
}

Tensor causal_softmax(Tape& tape, const std::string& name, const Tensor& scores) {
  const Tensor out = tape.make(name, scores.shape.dense(), scores.precision);
  tape.launch_partial(name, pointwise_kernel(out, 5, KernelKind::softmax), {half_of(scores)},
                      {{out.storage, out.traffic()}});
  tape.differentiable({scores}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    t.launch_partial(name + ".backward", pointwise_kernel(out, 4, KernelKind::softmax),
                     {half_of(g), half_of(out)}, {{g.storage, g.traffic()}});
    t.add_gradient(scores, t.alias(g, g.shape));
  });
  return out;
}

Tensor fused_rms_norm(Tape& tape, const std::string& name, const Tensor& x) {
  return fused_rms_norm(tape, name, x, tape.parameter(name + ".weight", {x.shape.last()}));
}

Tensor fused_rms_norm(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight) {
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  const Tensor factors = tape.make(name + ".statistics",
                                   StridedShape({x.elements() / x.shape.last()}), Precision::fp32);
  const auto kernel = [=](double flops) {
    return pointwise_kernel(x, flops, KernelKind::layer_norm);
  };
  tape.launch(name, kernel(5), {x, weight}, {out, factors});
  tape.python_calls(kNormForward);
  tape.differentiable({x, weight}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    const Tensor grad_x = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".grad_input", kernel(9), {g, x, factors, weight}, {grad_x});
    t.python_calls(kNormBackward);
    t.add_gradient(x, grad_x);
    if (!t.requires_gradient(weight)) return;
    const Tensor grad_weight = t.make(name + ".weight.grad", weight.shape, weight.precision);
    t.launch(name + ".gamma", kernel(3), {g, x, factors}, {grad_weight});
    t.add_gradient(weight, grad_weight);
  });
  return out;
}

Tensor plain_root_mean_square_norm(Tape& tape, const std::string& name, const Tensor& x) {
  const auto kernel = [=](double flops) {
    return pointwise_kernel(x, flops, KernelKind::layer_norm);
  };
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  tape.launch(name, kernel(4), {x}, {out});
  tape.python_calls(kNormForward);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".grad_input", kernel(8), {gradients[0], x}, {grad});
    t.python_calls(kNormBackward);
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor fused_rope(Tape& tape, const std::string& name, const Tensor& x, std::int64_t positions) {
  const Tensor table = tape.input("rotary.table", {positions, x.shape.last()}, Precision::fp32);
  const auto turned = [=](Tape& t, const std::string& kernel_name, const Tensor& from) {
    const Tensor out = t.make(kernel_name, from.shape.dense(), from.precision);
    t.launch(kernel_name, pointwise_kernel(out, 6), {from, table}, {out});
    return out;
  };
  const Tensor out = turned(tape, name, x);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, turned(t, name + ".backward", gradients[0]));
  });
  return out;
}

Tensor fused_gate(Tape& tape, const std::string& name, const Tensor& x, const Tensor& gate) {
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, pointwise_kernel(out, 5), {x, gate}, {out});
  tape.differentiable({x, gate}, out, [=](Tape& t, auto gradients) {
    const Tensor grad_x = t.make(name + ".grad", x.shape.dense(), x.precision);
    const Tensor grad_gate = t.make(name + ".gate.grad", gate.shape.dense(), gate.precision);
    t.launch(name + ".backward", pointwise_kernel(grad_x, 10), {gradients[0], x, gate},
             {grad_x, grad_gate});
    t.add_gradient(x, grad_x);
    t.add_gradient(gate, grad_gate);
  });
  return out;
}

Tensor fused_swiglu(Tape& tape, const std::string& name, const Tensor& x) {
  Sizes sizes = x.sizes();
  sizes.back() /= 2;
  const Tensor out = tape.make(name, StridedShape(sizes), x.precision);
  tape.launch(name, pointwise_kernel(out, 10), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 10), {gradients[0], x}, {grad});
    t.add_gradient(x, grad);
  });
  return out;
}

}  // namespace tessera
