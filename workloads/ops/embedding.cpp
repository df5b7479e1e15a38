#include "workloads/ops/embedding.h"

#include <algorithm>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Up to this many tokens one kernel adds the rows directly (Embedding.cu, `num_indices <= 3072`).
constexpr std::int64_t kTokensWithoutSort = 3072;
/// Radix sort passes and the segment search over the sorted indices (Embedding.cu; recalled).
constexpr int kIndexSortKernels = 6;

void sort_indices(Tape& tape, const std::string& name, const Tensor& ids) {
  const Tensor sorted = tape.make(name + ".sorted", ids.shape, ids.precision);
  tape.launch(name + ".sort", pointwise_kernel(ids, 1), {ids}, {sorted});
  for (int pass = 1; pass < kIndexSortKernels; ++pass) {
    tape.launch(name + ".sort", pointwise_kernel(ids, 1), {sorted}, {sorted});
  }
}

}  // namespace

Tensor embedding(Tape& tape, const std::string& name, const Tensor& table, const Tensor& ids) {
  Sizes sizes = ids.sizes();
  sizes.push_back(table.shape.last());
  const Tensor out = tape.make(name, StridedShape(sizes));
  const Access rows{table.storage, out.traffic()};
  const Access indices{ids.storage, ids.traffic()};
  tape.launch_partial(name, pointwise_kernel(out, 0, KernelKind::gather), {rows, indices},
                      {{out.storage, out.traffic()}});
  tape.differentiable({table}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", table.shape);
    t.launch(name + ".zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    if (ids.elements() > kTokensWithoutSort) sort_indices(t, name, ids);
    const Access touched{grad.storage, std::min(grad.traffic(), gradients[0].traffic())};
    t.launch_partial(name + ".scatter", pointwise_kernel(gradients[0], 1, KernelKind::scatter),
                     {{gradients[0].storage, gradients[0].traffic()}, indices, touched}, {touched});
    t.add_gradient(table, grad);
  });
  return out;
}

}  // namespace tessera
