#include "workloads/ops/pointwise.h"

#include <algorithm>
#include <cassert>

#include "workloads/graph/strided_loop.h"
#include "workloads/ops/views.h"
#include "workloads/program/pointwise_flops.h"

namespace tessera {
namespace {

Sizes broadcast_sizes(const std::vector<Tensor>& inputs) {
  Sizes sizes = inputs.front().sizes();
  for (const Tensor& input : inputs) {
    const Sizes& other = input.sizes();
    if (other.size() > sizes.size()) {
      sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
    }
    for (std::size_t i = 1; i <= other.size(); ++i) {
      sizes[sizes.size() - i] = std::max(sizes[sizes.size() - i], other[other.size() - i]);
    }
  }
  return sizes;
}

std::vector<StridedShape> broadcast(const std::vector<Tensor>& operands, const Sizes& sizes) {
  std::vector<StridedShape> shapes;
  for (const Tensor& operand : operands) shapes.push_back(broadcast_to(operand.shape, sizes));
  return shapes;
}

/// Whether a loop over `out` finds the operand's elements one after the other. A single number
/// stays in a register.
bool runs_along(const StridedShape& operand, const StridedShape& out) {
  if (operand.distinct_elements() == 1) return true;
  for (std::size_t d = 0; d < out.rank(); ++d) {
    if (out.sizes()[d] != 1 && operand.strides()[d] != out.strides()[d]) return false;
  }
  return true;
}

/// A kernel that writes `out` from `operands`, the first of which leads the loop. Operands that are
/// repeated or lie in another order take PyTorch's strided kernel; the one with the largest
/// footprint counts as read again.
Kernel strided_kernel(const Tensor& out, const std::vector<Tensor>& operands, double flops) {
  const std::vector<StridedShape> shapes = broadcast(operands, out.sizes());
  const std::vector<std::size_t> order = loop_order(shapes);
  Kernel kernel = pointwise_kernel(out, flops);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!runs_along(shapes[i], out.shape)) {
      kernel.kind = KernelKind::copy;
      kernel.strided = true;
    }
    const OperandReuse reuse =
        operand_reuse(shapes[i], order, element_bytes(operands[i].precision));
    if (reuse.footprint <= kernel.reuse_footprint) continue;
    kernel.bytes_refetched = reuse.refetched;
    kernel.reuse_footprint = reuse.footprint;
  }
  return kernel;
}

constexpr std::int64_t kWordBytes = 4;

bool is_floating(Precision precision) {
  return precision != Precision::int8 && precision != Precision::int64;
}

/// The widest floating format of `inputs`, as PyTorch promotes.
Precision promoted(const Tape& tape, const std::vector<Tensor>& inputs) {
  Precision widest = Precision::int8;
  for (const Tensor& input : inputs) {
    if (!is_floating(input.precision)) continue;
    if (element_bytes(input.precision) > element_bytes(widest)) widest = input.precision;
  }
  return is_floating(widest) ? widest : tape.precision();
}

/// f(x) whose backward is one kernel over the gradient and `saved`.
enum class Saves { input, output };
Tensor unary(Tape& tape, const std::string& name, const Tensor& x, double flops, Saves saves) {
  const Tensor out = map(tape, name, {x}, flops);
  const Tensor saved = saves == Saves::input ? x : out;
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, map(t, name + ".backward", {gradients[0], saved}, flops));
  });
  return out;
}

/// Lets a gradient through where the result is positive.
Tensor relu_gradient(Tape& tape, const std::string& name, const Tensor& gradient,
                     const Tensor& out) {
  const Tensor grad = map(tape, name + ".backward", {gradient, out}, 1);
  tape.reads_bits(out);
  return grad;
}

}  // namespace

Kernel pointwise_kernel(const Tensor& out, double flops, KernelKind kind) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.cols = out.shape.rank() == 0 ? 1 : out.shape.last();
  kernel.rows = out.elements() / kernel.cols;
  kernel.flops = Flops(flops * static_cast<double>(out.elements()));
  if (element_bytes(out.precision) < kWordBytes && is_floating(out.precision)) {
    kernel.precision = out.precision;
  }
  return kernel;
}

Kernel strided_copy(const Tensor& out, double flops) {
  Kernel kernel = pointwise_kernel(out, flops, KernelKind::copy);
  kernel.strided = true;
  return kernel;
}

Kernel reduction_kernel(const Tensor& in) {
  return pointwise_kernel(in, 1, KernelKind::reduction);
}

Tensor map(Tape& tape, const std::string& name, const std::vector<Tensor>& inputs, double flops) {
  const std::vector<StridedShape> shapes = broadcast(inputs, broadcast_sizes(inputs));
  const Tensor out = tape.make(name, pointwise_output(shapes), promoted(tape, inputs));
  tape.launch(name, strided_kernel(out, inputs, flops), inputs, std::span(&out, 1));
  return out;
}

void map_in_place(Tape& tape, const std::string& name, const Tensor& target,
                  const std::vector<Tensor>& others, double flops) {
  std::vector<Tensor> reads = others;
  reads.insert(reads.begin(), target);
  tape.launch(name, strided_kernel(target, reads, flops), reads, std::span(&target, 1));
}

Tensor sum_to(Tape& tape, const std::string& name, const Tensor& gradient, const Sizes& sizes) {
  if (gradient.sizes() == sizes) return gradient;
  const StridedShape shape(sizes);
  if (shape.elements() == gradient.elements()) return reshape(tape, gradient, sizes);
  const Tensor out = tape.make(name, shape, gradient.precision);
  tape.launch(name, reduction_kernel(gradient), {gradient}, {out});
  return out;
}

Tensor scalar_constant(Tape& tape, const std::string& name) {
  const Tensor out = tape.make(name, StridedShape({1}));
  tape.launch(name, pointwise_kernel(out, 0, KernelKind::fill), {}, {out});
  return out;
}

Tensor add_into_new(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  return map(tape, name, {a, b});
}

void add_in_place(Tape& tape, const std::string& name, const Tensor& target, const Tensor& other) {
  map_in_place(tape, name, target, {other});
}

Tensor add(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = map(tape, name, {a, b});
  tape.differentiable({a, b}, out, [=](Tape& t, auto gradients) {
    for (const Tensor& operand : {a, b}) {
      if (!t.requires_gradient(operand)) continue;
      t.add_gradient(operand, sum_to(t, name + ".sum", gradients[0], operand.sizes()));
    }
  });
  return out;
}

Tensor add_(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  map_in_place(tape, name, a, {b});
  const Tensor out = tape.alias(a, a.shape);
  tape.differentiable({a, b}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(a, gradients[0]);
    if (t.requires_gradient(b)) {
      t.add_gradient(b, sum_to(t, name + ".sum", gradients[0], b.sizes()));
    }
  });
  return out;
}

Tensor multiply(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = map(tape, name, {a, b});
  tape.differentiable({a, b}, out, [=](Tape& t, auto gradients) {
    const auto hand_on = [&](const Tensor& operand, const Tensor& other) {
      if (!t.requires_gradient(operand)) return;
      const Tensor product = map(t, name + ".mul", {gradients[0], other});
      t.add_gradient(operand, sum_to(t, name + ".sum", product, operand.sizes()));
    };
    hand_on(a, b);
    hand_on(b, a);
  });
  return out;
}

Tensor scale(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = map(tape, name, {x});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, map(t, name + ".mul", {gradients[0]}));
  });
  return out;
}

Tensor divide_by_constant(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor constant = scalar_constant(tape, name + ".constant");
  const Tensor out = map(tape, name, {x, constant});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, map(t, name + ".div", {gradients[0], constant}));
  });
  return out;
}

Tensor add_number(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = map(tape, name, {x});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) { t.add_gradient(x, gradients[0]); });
  return out;
}

Tensor cast(Tape& tape, const std::string& name, const Tensor& x, Precision precision) {
  if (x.precision == precision) return x;
  const auto converted = [](Tape& t, const std::string& kernel_name, const Tensor& from,
                            Precision to) {
    const Tensor out = t.make(kernel_name, from.shape.dense(), to);
    Kernel kernel = pointwise_kernel(out, 0);
    kernel.precision = element_bytes(from.precision) < element_bytes(to) ? from.precision : to;
    t.launch(kernel_name, kernel, {from}, {out});
    return out;
  };
  const Tensor out = converted(tape, name, x, precision);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, converted(t, name + ".backward", gradients[0], x.precision));
  });
  return out;
}

Tensor negate(Tape& tape, const std::string& name, const Tensor& x) {
  return scale(tape, name, x);
}

Tensor power(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = map(tape, name, {x}, 2);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor lower = map(t, name + ".pow", {x}, 2);
    const Tensor derivative = map(t, name + ".mul", {lower});
    t.add_gradient(x, map(t, name + ".mul", {derivative, gradients[0]}));
  });
  return out;
}

Tensor rsqrt(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = map(tape, name, {x}, 2);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor scaled = map(t, name + ".mul", {gradients[0]});
    const Tensor cube = map(t, name + ".pow", {out}, 2);
    t.add_gradient(x, map(t, name + ".mul", {scaled, cube}));
  });
  return out;
}

Tensor tanh(Tape& tape, const std::string& name, const Tensor& x) {
  return unary(tape, name, x, pointwise_flops::kTanh, Saves::output);
}
Tensor sigmoid(Tape& tape, const std::string& name, const Tensor& x) {
  return unary(tape, name, x, pointwise_flops::kSigmoid, Saves::output);
}
Tensor relu(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor out = map(tape, name, {x}, 1);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, relu_gradient(t, name, gradients[0], out));
  });
  return out;
}
Tensor relu_(Tape& tape, const std::string& name, const Tensor& x) {
  map_in_place(tape, name, x, {});
  const Tensor out = tape.written_over(x);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, relu_gradient(t, name, gradients[0], out));
  });
  return out;
}
Tensor gelu(Tape& tape, const std::string& name, const Tensor& x) {
  return unary(tape, name, x, pointwise_flops::kGelu, Saves::input);
}
Tensor silu(Tape& tape, const std::string& name, const Tensor& x) {
  return unary(tape, name, x, pointwise_flops::kSilu, Saves::input);
}

Tensor gelu_new(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor half = scale(tape, name + ".half", x);
  const Tensor cube = power(tape, name + ".pow", x);
  const Tensor scaled_cube = scale(tape, name + ".mul", cube);
  const Tensor polynomial = add(tape, name + ".add", x, scaled_cube);
  const Tensor argument = scale(tape, name + ".mul", polynomial);
  const Tensor tangent = tanh(tape, name + ".tanh", argument);
  const Tensor gate = add_number(tape, name + ".add", tangent);
  return multiply(tape, name + ".gate", half, gate);
}

Tensor xielu(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor above = tape.parameter(name + ".alpha_p", {1});
  const Tensor below = tape.parameter(name + ".alpha_n", {1});
  const Tensor out = map(tape, name, {x, above, below}, 8);
  tape.differentiable({x, above, below}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", x.shape.dense(), x.precision);
    const Tensor of_above = t.make(name + ".alpha_p.grad", above.shape, above.precision);
    const Tensor of_below = t.make(name + ".alpha_n.grad", below.shape, below.precision);
    t.launch(name + ".backward", pointwise_kernel(grad, 16), {gradients[0], x, above, below},
             {grad, of_above, of_below});
    t.add_gradient(x, grad);
    t.add_gradient(above, of_above);
    t.add_gradient(below, of_below);
  });
  return out;
}

Tensor activate(Tape& tape, const std::string& name, Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::gelu:
    case Activation::geglu:
      return gelu(tape, name, x);
    case Activation::gelu_new:
      return gelu_new(tape, name, x);
    case Activation::relu:
      return relu(tape, name, x);
    case Activation::silu:
    case Activation::swiglu:
      return silu(tape, name, x);
    case Activation::relu_squared:
      return unary(tape, name, x, 2, Saves::input);  // Megatron-Core's squared_relu, one kernel
    case Activation::xielu:
      return xielu(tape, name, x);
  }
  return x;
}

Tensor where(Tape& tape, const std::string& name, const Tensor& mask, const Tensor& x) {
  const Tensor other = scalar_constant(tape, name + ".constant");
  const Tensor out = map(tape, name, {x, mask, other}, 0);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor zero = scalar_constant(t, name + ".zero");
    t.add_gradient(x, map(t, name + ".where", {gradients[0], mask, zero}, 0));
  });
  return out;
}

Tensor maximum_with_constant(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor constant = tape.input(name + ".constant", {1}, x.precision);
  const Tensor out = map(tape, name, {x, constant});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const auto compare = [&](const char* op) {
      const Tensor result = t.make(name + op, x.shape.dense(), Precision::int8);
      t.launch(name + op, pointwise_kernel(result, 1), {x, constant}, {result});
      return result;
    };
    const Tensor half = map(t, name + ".div", {gradients[0]});
    const Tensor equal = compare(".eq");
    const Tensor merged = map(t, name + ".where", {half, gradients[0], equal}, 0);
    const Tensor below = compare(".lt");
    map_in_place(t, name + ".masked_fill", merged, {below}, 0);
    t.add_gradient(x, merged);
  });
  return out;
}

Tensor masked_fill_(Tape& tape, const std::string& name, const Tensor& x, const Tensor& mask) {
  map_in_place(tape, name, x, {mask}, 0);
  const Tensor out = tape.alias(x, x.shape);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor copy = map(t, name + ".clone", {gradients[0]}, 0);
    map_in_place(t, name + ".masked_fill", copy, {mask}, 0);
    t.add_gradient(x, copy);
  });
  return out;
}

Tensor mean_last(Tape& tape, const std::string& name, const Tensor& x) {
  Sizes sizes = x.sizes();
  sizes.back() = 1;
  const Tensor out = tape.make(name, StridedShape(sizes), x.precision);
  tape.launch(name, reduction_kernel(x), {x}, {out});
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    const Tensor spread = t.alias(gradients[0], gradients[0].shape.expanded(x.sizes()));
    t.add_gradient(x, map(t, name + ".div", {spread}));
  });
  return out;
}

}  // namespace tessera
