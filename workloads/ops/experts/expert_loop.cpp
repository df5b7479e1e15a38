#include "workloads/ops/experts/expert_loop.h"

#include <utility>

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"

namespace tessera {
namespace {

/// Of nonzero() once their number is known: set up and run the selection, split positions by
/// dimension (PyTorch aten/src/ATen/native/cuda/Nonzero.cu; recalled).
constexpr int kPositionKernels = 3;
/// Of index_put with accumulation, over the positions: remainder, product and quotient that make
/// them offsets, then passes of a radix sort (PyTorch aten/src/ATen/native/cuda/Indexing.cu,
/// index_put_with_sort_kernel; recalled).
constexpr int kOffsetKernels = 3;
constexpr int kOffsetSortKernels = 6;

Kernel moved_rows(const Tensor& rows, KernelKind kind, double flops = 0) {
  return pointwise_kernel(rows, flops, kind);
}

/// The `k` largest of every row, and where they are; sorted by another kernel.
struct Best {
  Tensor values, places;
};
Best top_k(Tape& tape, const std::string& name, const Tensor& scores, std::int64_t k) {
  const StridedShape shape({scores.sizes()[0], k});
  const Best best{tape.make(name, shape, scores.precision),
                  tape.make(name + ".places", shape, Precision::int64)};
  tape.launch(name, reduction_kernel(scores), {scores}, {best.values, best.places});
  tape.launch(name + ".sort", pointwise_kernel(best.values, 1), {best.values, best.places},
              {best.values, best.places});
  tape.differentiable({scores}, best.values, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", scores.shape, scores.precision);
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    t.launch_partial(name + ".scatter", pointwise_kernel(gradients[0], 0, KernelKind::scatter),
                     {whole(gradients[0]), whole(best.places)},
                     {{grad.storage, gradients[0].traffic()}});
    t.add_gradient(scores, grad);
  });
  return best;
}

/// x /= x.sum(-1, keepdim=True). Backward of a quotient: the gradient by the divisor; the negated
/// gradient times the quotient by the divisor, summed over each row.
Tensor divided_by_sum_(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor sum = tape.make(name + ".sum", StridedShape({x.sizes()[0], 1}), x.precision);
  tape.launch(name + ".sum", reduction_kernel(x), {x}, {sum});
  map_in_place(tape, name + ".div", x, {sum});
  const Tensor out = tape.written_over(x);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor direct = map(t, name + ".div.backward", {gradients[0], sum});
    const Tensor share = map(t, name + ".sum.div", {out, sum});
    const Tensor negated = map(t, name + ".sum.neg", {gradients[0]});
    const Tensor product = map(t, name + ".sum.mul", {negated, share});
    const Tensor of_sum = sum_to(t, name + ".sum.grad", product, sum.sizes());
    t.add_gradient(x, map(t, name + ".join", {direct, of_sum}));
  });
  return out;
}

Tensor one_hot(Tape& tape, const std::string& name, const Tensor& places, std::int64_t classes) {
  Sizes sizes = places.sizes();
  sizes.push_back(classes);
  const Tensor mask = tape.make(name, StridedShape(sizes), Precision::int64);
  tape.launch(name + ".zeros", pointwise_kernel(mask, 0, KernelKind::fill), {}, {mask});
  tape.launch_partial(name + ".scatter", pointwise_kernel(places, 0, KernelKind::scatter),
                      {whole(places)}, {{mask.storage, places.traffic()}});
  return mask;
}

/// Positions as offsets, sorted.
Tensor sorted_offsets(Tape& tape, const std::string& name, const Tensor& positions) {
  const Tensor offsets =
      tape.make(name + ".offsets", StridedShape({positions.sizes()[0]}), Precision::int64);
  tape.launch(name + ".offsets", pointwise_kernel(offsets, 1), {positions}, {offsets});
  for (int i = 1; i < kOffsetKernels; ++i) map_in_place(tape, name + ".offsets", offsets, {});
  const Tensor sorted = tape.make(name + ".sorted", offsets.shape, Precision::int64);
  tape.launch(name + ".sort", pointwise_kernel(sorted, 1), {offsets}, {sorted});
  for (int i = 1; i < kOffsetSortKernels; ++i) map_in_place(tape, name + ".sort", sorted, {});
  return sorted;
}

}  // namespace

ExpertChoice choose_experts(Tape& tape, const std::string& name, const Tensor& x,
                            std::int64_t experts, std::int64_t k) {
  const Tensor weight = tape.parameter(name + ".weight", {experts, x.shape.last()});
  const Tensor logits = linear_matrix(tape, name, x, weight, {.full_precision = true});
  const Tensor scores =
      softmax(tape, name + ".softmax", cast(tape, name + ".float", logits, Precision::fp32));
  const Best best = top_k(tape, name + ".top_k", scores, k);
  const Tensor normalized = divided_by_sum_(tape, name + ".normalize", best.values);
  return {cast(tape, name + ".cast", normalized, x.precision),
          one_hot(tape, name + ".one_hot", best.places, experts)};
}

Tensor tokens_of_expert(Tape& tape, const std::string& name, const Tensor& mask,
                        std::int64_t count) {
  const Sizes& sizes = mask.sizes();
  const Tensor column =
      tape.make(name + ".column", StridedShape({sizes[1], sizes[0]}), Precision::int64);
  tape.launch_partial(name + ".column", pointwise_kernel(column, 0, KernelKind::copy),
                      {{mask.storage, column.traffic()}}, {whole(column)});
  const Tensor number = tape.make(name + ".count", StridedShape({1}), Precision::int64);
  tape.launch(name + ".count", reduction_kernel(column), {column}, {number});
  tape.host_sync(name + ".count");
  const Tensor positions =
      tape.make(name + ".positions", StridedShape({count, 2}), Precision::int64);
  if (count == 0) return positions;
  tape.launch(name + ".nonzero", pointwise_kernel(column, 1), {column}, {positions});
  for (int i = 1; i < kPositionKernels; ++i) map_in_place(tape, name + ".nonzero", positions, {});
  return positions;
}

Tensor rows_at(Tape& tape, const std::string& name, const Tensor& x, const Tensor& positions,
               Sizes sizes) {
  const Tensor out = tape.make(name, StridedShape(std::move(sizes)), x.precision);
  tape.launch_partial(name, moved_rows(out, KernelKind::gather),
                      {{x.storage, out.traffic()}, whole(positions)}, {whole(out)});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    const Tensor offsets = sorted_offsets(t, name, positions);
    const Access touched{grad.storage, g.traffic()};
    t.launch_partial(name + ".index_put", moved_rows(g, KernelKind::scatter, 1),
                     {whole(g), whole(offsets), touched}, {touched});
    t.add_gradient(x, grad);
  });
  return out;
}

Tensor zeros(Tape& tape, const std::string& name, Sizes sizes) {
  const Tensor out = tape.make(name, StridedShape(std::move(sizes)));
  tape.launch(name, pointwise_kernel(out, 0, KernelKind::fill), {}, {out});
  return out;
}

Tensor add_rows_at(Tape& tape, const std::string& name, const Tensor& target, const Tensor& rows,
                   const Tensor& positions) {
  const Access touched{target.storage, rows.traffic()};
  tape.launch_partial(name, moved_rows(rows, KernelKind::scatter, 1),
                      {whole(rows), whole(positions), touched}, {touched});
  const Tensor out = tape.written_over(target);
  tape.differentiable({target, rows}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(target, gradients[0]);
    const Tensor grad = t.make(name + ".grad", rows.shape.dense(), rows.precision);
    t.launch_partial(name + ".index_select", moved_rows(grad, KernelKind::gather),
                     {{gradients[0].storage, grad.traffic()}, whole(positions)}, {whole(grad)});
    t.add_gradient(rows, grad);
  });
  return out;
}

}  // namespace tessera
