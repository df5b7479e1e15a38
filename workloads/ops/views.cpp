#include "workloads/ops/views.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// A row-major copy; its gradient is the gradient of `x`.
Tensor clone(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  tape.launch(name, pointwise_kernel(out, 0, KernelKind::copy), {x}, {out});
  tape.differentiable({x}, out, [x](Tape& t, auto gradients) { t.add_gradient(x, gradients[0]); });
  return out;
}

}  // namespace

Tensor view(Tape& tape, const Tensor& x, Sizes sizes) {
  const auto shape = x.shape.viewed(sizes);
  assert(shape.has_value());
  const Tensor out = tape.alias(x, *shape);
  tape.differentiable({x}, out, [x](Tape& t, auto gradients) {
    t.add_gradient(x, reshape(t, gradients[0], x.sizes()));
  });
  return out;
}

Tensor reshape(Tape& tape, const Tensor& x, Sizes sizes) {
  if (x.shape.viewed(sizes)) return view(tape, x, std::move(sizes));
  return view(tape, clone(tape, "copy", x), std::move(sizes));
}

Tensor permute(Tape& tape, const Tensor& x, std::vector<int> order) {
  const Tensor out = tape.alias(x, x.shape.permuted(order));
  std::vector<int> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  tape.differentiable({x}, out, [x, inverse](Tape& t, auto gradients) {
    t.add_gradient(x, t.alias(gradients[0], gradients[0].shape.permuted(inverse)));
  });
  return out;
}

Tensor transpose(Tape& tape, const Tensor& x, int a, int b) {
  std::vector<int> order(x.shape.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return permute(tape, x, std::move(order));
}

Tensor contiguous(Tape& tape, const std::string& name, const Tensor& x) {
  return x.shape.contiguous() ? x : clone(tape, name, x);
}

std::vector<Tensor> chunk_last(Tape& tape, const std::string& name, const Tensor& x, int count) {
  const std::size_t last = x.shape.rank() - 1;
  const StridedShape part = x.shape.narrowed(last, x.shape.last() / count);
  std::vector<Tensor> parts;
  for (int i = 0; i < count; ++i) parts.push_back(tape.alias(x, part));
  tape.differentiable({x}, parts, [x, name](Tape& t, auto gradients) {
    const Tensor whole = t.make(name + ".grad", StridedShape(x.sizes()));
    t.launch(name + ".cat", pointwise_kernel(whole, 0, KernelKind::copy), gradients,
             std::span(&whole, 1));
    t.add_gradient(x, whole);
  });
  return parts;
}

Tensor expand(Tape& tape, const std::string& name, const Tensor& x, const Sizes& sizes) {
  const Tensor out = tape.alias(x, x.shape.expanded(sizes));
  tape.differentiable({x}, out, [x, name](Tape& t, auto gradients) {
    t.add_gradient(x, sum_to(t, name + ".sum", gradients[0], x.sizes()));
  });
  return out;
}

Tensor select_first(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim) {
  Sizes sizes = x.sizes();
  Sizes strides = x.shape.strides();
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  const Tensor out = tape.alias(x, StridedShape(sizes, strides));
  tape.differentiable({x}, out, [x, name](Tape& t, auto gradients) {
    const Tensor whole = t.make(name + ".grad", StridedShape(x.sizes()));
    t.launch(name + ".zero", pointwise_kernel(whole, 0, KernelKind::fill), {}, {whole});
    t.launch_partial(name + ".copy", pointwise_kernel(gradients[0], 0, KernelKind::copy),
                     {{gradients[0].storage, gradients[0].traffic()}},
                     {{whole.storage, gradients[0].traffic()}});
    t.add_gradient(x, whole);
  });
  return out;
}

}  // namespace tessera
