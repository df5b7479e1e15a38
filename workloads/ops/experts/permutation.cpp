// Tokens in the order of their experts, and the sums of what experts made of them.
#include <string>
#include <vector>

#include "workloads/ops/experts/experts.h"
#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Copies rows between the order of tokens and that of experts.
Kernel row_kernel(const Tensor& rows, KernelKind kind = KernelKind::gather) {
  return pointwise_kernel(rows, 0, kind);
}

void launch_each(Tape& tape, const std::string& name, const Tensor& from, const Tensor& to,
                 const std::vector<const char*>& kernels) {
  for (const char* kernel : kernels)
    tape.launch(name + kernel, pointwise_kernel(to, 0), {from}, {to});
}

/// Per token the sum of its rows: one kernel, or zeros and an atomic addition of each number
/// (scatter_add_, and index_add_ in backward of index_select).
Tensor summed_rows(Tape& tape, const std::string& name, const std::vector<Tensor>& reads,
                   const StridedShape& shape, bool fused) {
  const Tensor rows = reads.front();
  const Tensor sums = tape.make(name, shape, rows.precision);
  if (fused) {
    tape.launch(name, row_kernel(rows), reads, std::vector{sums});
    return sums;
  }
  tape.launch(name + ".zeros", pointwise_kernel(sums, 0, KernelKind::fill), {}, {sums});
  std::vector<Access> accesses;
  for (const Tensor& read : reads) accesses.push_back({read.storage, read.traffic()});
  tape.launch_partial(name, row_kernel(rows, KernelKind::scatter), accesses,
                      {{sums.storage, rows.traffic()}});
  return sums;
}

/// What goes where: rows per expert and per rank, those of all ranks, and how many come. The host
/// waits for them, to know the sizes. Source: Megatron-Core transformer/moe/token_dispatcher.py,
/// MoEAlltoAllTokenDispatcher.preprocess().
void count_rows(Tape& tape, const std::string& name, const Tensor& marks,
                const Permutation& permutation) {
  const Tensor counts =
      tape.make(name + ".counts", StridedShape({permutation.experts}), Precision::int64);
  tape.launch(name + ".histogram", reduction_kernel(marks), {marks}, {counts});
  if (permutation.capacity > 0) return;
  if (permutation.ranks > 1) {
    const Tensor all =
        tape.make(name + ".counts.all", StridedShape({permutation.ranks, permutation.experts}),
                  Precision::int64);
    tape.launch(name + ".counts.sent", reduction_kernel(counts), {counts}, {});
    tape.collective(OpKind::all_gather, name + ".counts.all_gather", GroupKind::expert, counts,
                    all);
    tape.wait();
    for (const char* sum : {".counts.own", ".counts.received", ".counts.experts"})
      tape.launch(name + sum, reduction_kernel(all), {all}, {counts});
  }
  if (permutation.host_waits) tape.host_sync(name + ".counts.tolist");
}

/// Where rows go: Transformer Engine's three passes over marks (common/permutation), or PyTorch's
/// masked_select of tokens and of weights, each of which counts and lists the marks, and has the
/// host wait between the two. Source: Megatron-Core transformer/moe/moe_utils.py, permute().
Tensor places_of_rows(Tape& tape, const std::string& name, const Tensor& marks,
                      const Permutation& permutation, std::int64_t count) {
  const Tensor map = tape.make(name + ".places", marks.shape, Precision::fp32);
  if (permutation.fused) {
    launch_each(tape, name, marks, map, {".places.count", ".places.scan", ".places.fill"});
    return map;
  }
  const Tensor places = tape.make(name + ".sorted", StridedShape({count}), Precision::int64);
  for (const char* part : {".places.tokens", ".places.weights"}) {
    launch_each(tape, name + part, marks, map, {".transpose", ".count"});
    if (permutation.capacity == 0 && permutation.host_waits) tape.host_sync(name + part);
    launch_each(tape, name + part, marks, map, {".scan", ".list"});
    launch_each(tape, name + part, map, places, {".divide", ".select"});
  }
  return places;
}

/// The k best tokens of every expert, by its scores, and no others: a selection along the tokens,
/// zeros, a copy and a scatter of marks, their cast, weights without those of the others. Source:
/// Megatron-Core transformer/moe/moe_utils.py, apply_router_token_dropping().
void drop_tokens(Tape& tape, const std::string& name, const Tensor& marks) {
  const Tensor weights = tape.make(name + ".drop", marks.shape, Precision::fp32);
  launch_each(tape, name, marks, weights,
              {".drop.top_k", ".drop.zeros", ".drop.copy", ".drop.scatter", ".drop.cast",
               ".drop.multiply"});
}

}  // namespace

Tensor permute_to_experts(Tape& tape, const std::string& name, const Tensor& x,
                          const ChosenExperts& choice, const Permutation& permutation) {
  const std::int64_t experts = permutation.experts;
  const Tensor marks = choice.marks;
  if (permutation.capacity > 0) drop_tokens(tape, name, marks);
  count_rows(tape, name, marks, permutation);
  const std::int64_t count =
      permutation.capacity > 0 ? experts * permutation.capacity : choice.experts.elements();
  const Tensor order = places_of_rows(tape, name, marks, permutation, count);
  const Tensor rows =
      tape.make(name + ".permuted", StridedShape({count, x.shape.last()}), x.precision);
  tape.launch_partial(name + ".permute", row_kernel(rows),
                      {{x.storage, rows.traffic()}, {order.storage, order.traffic()}},
                      {{rows.storage, rows.traffic()}});
  tape.differentiable({x}, rows, [=](Tape& t, auto gradients) {
    const Tensor grad = summed_rows(t, name + ".permute.backward", {gradients[0], order},
                                    x.shape.dense(), permutation.fused);
    tensor_all_reduce(t, name + ".permute.backward.all_reduce", grad, permutation.tensor);
    t.add_gradient(x, grad);
  });
  return rows;
}

Tensor sum_of_experts(Tape& tape, const std::string& name, const Tensor& results,
                      const Sizes& sizes, bool fused) {
  const Tensor out = summed_rows(tape, name, {results}, StridedShape(sizes), fused);
  tape.differentiable({results}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", results.shape.dense(), results.precision);
    t.launch(name + ".backward", row_kernel(results), {gradients[0]}, {grad});
    t.add_gradient(results, grad);
  });
  return out;
}

Tensor moved_rows(Tape& tape, const std::string& name, const Tensor& rows) {
  const auto move = [name](Tape& t, const std::string& end, const Tensor& from) {
    const Tensor to = t.make(name + end, from.shape.dense(), from.precision);
    t.launch(name + end, pointwise_kernel(to, 0, KernelKind::copy), {from}, {to});
    return to;
  };
  const Tensor out = move(tape, "", rows);
  tape.differentiable({rows}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(rows, move(t, ".backward", gradients[0]));
  });
  return out;
}

}  // namespace tessera
