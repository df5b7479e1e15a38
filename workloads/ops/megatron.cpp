#include "workloads/ops/megatron.h"

#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

Tensor transposed_batch(Tape& tape, const Tensor& x) {
  return tape.alias(x, x.shape.permuted({0, 2, 1}));
}

/// `x` with its first dimension times `numerator` / `denominator`, not yet written.
Tensor resized(Tape& tape, const std::string& name, const Tensor& x, int numerator,
               int denominator) {
  Sizes sizes = x.sizes();
  sizes.front() = sizes.front() * numerator / denominator;
  return tape.make(name, StridedShape(sizes), x.precision);
}

Tensor all_gathered(Tape& tape, const std::string& name, const Tensor& x, int tensor) {
  const Tensor all = resized(tape, name, x, tensor, 1);
  tape.collective(OpKind::all_gather, name, GroupKind::tensor, x, all);
  tape.wait();
  return all;
}

Tensor reduce_scattered(Tape& tape, const std::string& name, const Tensor& x, int tensor) {
  const Tensor part = resized(tape, name, x, 1, tensor);
  tape.collective(OpKind::reduce_scatter, name, GroupKind::tensor, x, part);
  tape.wait();
  return part;
}

/// a b added to `bias`, whose rows are all alike.
Tensor biased_product(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                      const Tensor& bias) {
  const Sizes sizes{a.sizes()[0], a.shape.last(1), b.shape.last()};
  const Tensor target = clone(tape, name + ".bias_copy", expand(tape, name, bias, sizes));
  product_into(tape, name, a, b, target);
  return tape.written_over(target);
}

}  // namespace

Tensor gather_sequence(Tape& tape, const std::string& name, const Tensor& x, int tensor) {
  const Tensor all = all_gathered(tape, name + ".all_gather", x, tensor);
  tape.differentiable({x}, all, [=](Tape& t, auto gradients) {
    t.add_gradient(x, reduce_scattered(t, name + ".grad.reduce_scatter", gradients[0], tensor));
  });
  return all;
}

Tensor reduce_scatter_sequence(Tape& tape, const std::string& name, const Tensor& x, int tensor) {
  const Tensor part = reduce_scattered(tape, name + ".reduce_scatter", x, tensor);
  tape.differentiable({x}, part, [=](Tape& t, auto gradients) {
    t.add_gradient(x, all_gathered(t, name + ".grad.all_gather", gradients[0], tensor));
  });
  return part;
}

Tensor split_sequence(Tape& tape, const std::string& name, const Tensor& x, int tensor) {
  const Tensor part = resized(tape, name + ".split", x, 1, tensor);
  tape.launch_partial(name + ".split", pointwise_kernel(part, 0, KernelKind::copy),
                      {{x.storage, part.traffic()}}, {{part.storage, part.traffic()}});
  tape.differentiable({x}, part, [=](Tape& t, auto gradients) {
    t.add_gradient(x, all_gathered(t, name + ".grad.all_gather", gradients[0], tensor));
  });
  return part;
}

void tensor_all_reduce(Tape& tape, const std::string& name, const Tensor& x, int tensor) {
  if (tensor == 1) return;
  tape.all_reduce(name, x, GroupKind::tensor);
  tape.wait();
}

Tensor column_parallel_linear(Tape& tape, const std::string& name, const Tensor& x,
                              const Tensor& weight, const TensorSplit& split,
                              const std::optional<Tensor>& bias) {
  return linear_over_last(tape, name, x, weight,
                          {.bias = bias,
                           .reduce_gradient_over = split.tensor,
                           .overlap_sum = split.overlap_sum,
                           .gather_input_over = split.sequence_parts,
                           .in_chunks = split.in_chunks,
                           .own_rows_first = split.own_rows_first,
                           .keeps_gathered = split.keeps_gathered});
}

Tensor row_parallel_linear(Tape& tape, const std::string& name, const Tensor& x,
                           const Tensor& weight, const TensorSplit& split) {
  const Tensor out = linear_over_last(tape, name, x, weight,
                                      {.scatter_output_over = split.sequence_parts,
                                       .in_chunks = split.in_chunks,
                                       .own_rows_first = split.own_rows_first});
  if (split.sequence_parts == 1) tensor_all_reduce(tape, name + ".all_reduce", out, split.tensor);
  return out;
}

Tensor scaled_bmm(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                  const std::optional<Tensor>& bias) {
  const Tensor out = bias ? biased_product(tape, name, a, b, *bias) : product(tape, name, a, b);
  tape.differentiable({a, b}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    const Tensor grad_a = product(t, name + ".grad_a", g, transposed_batch(t, b));
    t.add_gradient(a, map(t, name + ".alpha", {grad_a}));
    const Tensor grad_b = product(t, name + ".grad_b", transposed_batch(t, a), g);
    t.add_gradient(b, map(t, name + ".alpha", {grad_b}));
  });
  return out;
}

Tensor bias_dropout_add(Tape& tape, const std::string& name, const Tensor& x, const Tensor& bias,
                        const Tensor& residual, double probability) {
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  const Tensor mask = tape.make(name + ".mask", x.shape.dense(), Precision::int8);
  const bool drops = probability > 0;
  const std::vector<Tensor> writes = drops ? std::vector{out, mask} : std::vector{out};
  tape.launch(name, pointwise_kernel(out, 5), std::vector{x, bias, residual}, writes);
  tape.differentiable({x, bias, residual}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    const Tensor kept = drops ? map(t, name + ".masked_scale", {g, mask}, 2) : g;
    if (drops) t.reads_bits(mask);
    t.add_gradient(residual, g);
    t.add_gradient(x, kept);
    t.add_gradient(bias, sum_to(t, name + ".bias_grad", kept, bias.sizes()));
  });
  return out;
}

Tensor bias_gelu(Tape& tape, const std::string& name, const Tensor& x, const Tensor& bias) {
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  tape.launch(name, pointwise_kernel(out, 15), {x, bias}, {out});
  tape.differentiable({x, bias}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense());
    t.launch(name + ".backward", pointwise_kernel(grad, 25), {gradients[0], x, bias}, {grad});
    t.add_gradient(x, grad);
    t.add_gradient(bias, sum_to(t, name + ".bias_grad", grad, bias.sizes()));
  });
  return out;
}

Tensor vocab_parallel_embedding(Tape& tape, const std::string& name, const Tensor& table,
                                const Tensor& ids, int tensor, bool summed) {
  const Tensor rows = embedding(tape, name, table, ids);
  if (tensor == 1) return rows;
  const Tensor foreign = tape.make(name + ".mask", ids.shape, Precision::int8);
  tape.launch(name + ".mask", pointwise_kernel(foreign, 3), {ids}, {foreign});
  map_in_place(tape, name + ".mask_fill", rows, {tape.alias(foreign, foreign.shape)}, 0);
  if (summed) tensor_all_reduce(tape, name + ".all_reduce", rows, tensor);
  return rows;
}

}  // namespace tessera
