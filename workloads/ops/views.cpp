#include "workloads/ops/views.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Gradient of a window on `x`: zeros around the window's gradient.
void add_window_gradient(Tape& t, const std::string& name, const Tensor& x, const Tensor& window) {
  const Tensor whole = t.make(name + ".grad", StridedShape(x.sizes()), x.precision);
  t.launch(name + ".zero", pointwise_kernel(whole, 0, KernelKind::fill), {}, {whole});
  t.launch_partial(name + ".copy", strided_copy(window), {{window.storage, window.traffic()}},
                   {{whole.storage, window.traffic()}});
  t.add_gradient(x, whole);
}

std::vector<Tensor> split_along(Tape& tape, const std::string& name, const Tensor& x,
                                std::size_t dim, const Sizes& lengths) {
  std::vector<Tensor> parts;
  for (const std::int64_t length : lengths)
    parts.push_back(tape.alias(x, x.shape.narrowed(dim, length)));
  tape.differentiable({x}, parts, [x, name](Tape& t, auto gradients) {
    const Tensor whole = t.make(name + ".grad", StridedShape(x.sizes()), x.precision);
    t.launch(name + ".cat", pointwise_kernel(whole, 0, KernelKind::copy), gradients,
             std::span(&whole, 1));
    t.add_gradient(x, whole);
  });
  return parts;
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
  return view(tape, clone(tape, tape.name_of(x) + ".copy", x), std::move(sizes));
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

Tensor transposed(Tape& tape, const Tensor& x) {
  std::vector<int> order(x.shape.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return tape.alias(x, x.shape.permuted(order));
}

Tensor clone(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = tape.make(name, StridedShape(x.sizes()), x.precision);
  const bool in_order = x.shape.contiguous();
  tape.launch(name, in_order ? pointwise_kernel(out, 0, KernelKind::copy) : strided_copy(out), {x},
              {out});
  tape.differentiable({x}, out, [x](Tape& t, auto gradients) { t.add_gradient(x, gradients[0]); });
  return out;
}

Tensor contiguous(Tape& tape, const std::string& name, const Tensor& x) {
  return x.shape.contiguous() ? x : clone(tape, name, x);
}

std::vector<Tensor> split_last(Tape& tape, const std::string& name, const Tensor& x,
                               const Sizes& lengths) {
  return split_along(tape, name, x, x.shape.rank() - 1, lengths);
}

std::vector<Tensor> chunk_last(Tape& tape, const std::string& name, const Tensor& x, int count) {
  return split_last(tape, name, x, Sizes(static_cast<std::size_t>(count), x.shape.last() / count));
}

std::vector<Tensor> chunk_first(Tape& tape, const std::string& name, const Tensor& x, int count) {
  const Sizes lengths(static_cast<std::size_t>(count), x.sizes().front() / count);
  return split_along(tape, name, x, 0, lengths);
}

Tensor concatenate_last(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  Sizes sizes = a.sizes();
  sizes.back() += b.sizes().back();
  const Tensor out = tape.make(name, StridedShape(sizes), a.precision);
  tape.launch(name, pointwise_kernel(out, 0, KernelKind::copy), {a, b}, {out});
  tape.differentiable({a, b}, out, [=](Tape& t, auto gradients) {
    const std::size_t last = out.shape.rank() - 1;
    for (const Tensor& part : {a, b}) {
      const StridedShape window = gradients[0].shape.narrowed(last, part.sizes().back());
      t.add_gradient(part, t.alias(gradients[0], window));
    }
  });
  return out;
}

Tensor concatenate(Tape& tape, const std::string& name, const std::vector<Tensor>& parts,
                   std::size_t dim) {
  Sizes sizes = parts.front().sizes();
  sizes[dim] = 0;
  for (const Tensor& part : parts) sizes[dim] += part.sizes()[dim];
  const Tensor out = tape.make(name, StridedShape(sizes), parts.front().precision);
  tape.launch(name, pointwise_kernel(out, 0, KernelKind::copy), parts, std::span(&out, 1));
  tape.differentiable(parts, std::span(&out, 1), [=](Tape& t, std::span<const Tensor> gradients) {
    for (const Tensor& part : parts) {
      if (!t.requires_gradient(part)) continue;
      const StridedShape window = gradients[0].shape.narrowed(dim, part.sizes()[dim]);
      t.add_gradient(part, t.alias(gradients[0], window));
    }
  });
  return out;
}

Tensor expand(Tape& tape, const std::string& name, const Tensor& x, const Sizes& sizes) {
  const Tensor out = tape.alias(x, x.shape.expanded(sizes));
  tape.differentiable({x}, out, [x, name](Tape& t, auto gradients) {
    t.add_gradient(x, sum_to(t, name + ".sum", gradients[0], x.sizes()));
  });
  return out;
}

Tensor slice_last(Tape& tape, const std::string& name, const Tensor& x, std::int64_t length) {
  const Tensor out = tape.alias(x, x.shape.narrowed(x.shape.rank() - 1, length));
  tape.differentiable({x}, out, [x, name](Tape& t, auto gradients) {
    add_window_gradient(t, name, x, gradients[0]);
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
    add_window_gradient(t, name, x, gradients[0]);
  });
  return out;
}

}  // namespace tessera
