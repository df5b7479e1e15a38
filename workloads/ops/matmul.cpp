#include "workloads/ops/matmul.h"

#include <cassert>
#include <optional>
#include <span>
#include <vector>

#include "workloads/mixed_precision.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/quantized_linear.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Whether a matrix lies in memory column by column.
bool is_transposed(const Tensor& matrix) {
  const Sizes& strides = matrix.shape.strides();
  return strides.back() != 1 && matrix.shape.last() != 1;
}

GemmLayout layout_of(const Tensor& a, const Tensor& b) {
  if (is_transposed(a)) return GemmLayout::nt;
  return is_transposed(b) ? GemmLayout::tn : GemmLayout::nn;
}

/// FP8 and FP4 are for operands that were cast to them; what else a step multiplies is 16-bit.
Precision arithmetic(const Tape& tape, const Tensor& operand) {
  return is_cast_for_products(tape.gemm_precision()) ? operand.precision : tape.gemm_precision();
}

Kernel product_kernel(const Tape& tape, const Tensor& a, const Tensor& b) {
  Kernel kernel;
  kernel.kind = a.shape.rank() == 2 ? KernelKind::gemm : KernelKind::batched_gemm;
  kernel.precision = arithmetic(tape, a);
  kernel.layout = layout_of(a, b);
  kernel.batch = a.shape.rank() == 2 ? 1 : a.sizes().front();
  kernel.m = a.shape.last(1);
  kernel.k = a.shape.last();
  kernel.n = b.shape.last();
  assert(b.shape.last(1) == kernel.k);
  kernel.flops = Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                       static_cast<double>(kernel.n) * static_cast<double>(kernel.k));
  return kernel;
}

}  // namespace

Tensor product_output(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  Sizes sizes = a.sizes();
  sizes.back() = b.shape.last();
  return tape.make(name, StridedShape(sizes));
}

void product_to(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                const std::optional<Tensor>& bias, const Tensor& out) {
  Kernel kernel = product_kernel(tape, a, b);
  kernel.bias = bias.has_value();
  std::vector<Tensor> reads{a, b};
  if (bias) reads.push_back(*bias);
  tape.launch(name, kernel, reads, std::span(&out, 1));
}

Tensor product(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = product_output(tape, name, a, b);
  product_to(tape, name, a, b, std::nullopt, out);
  return out;
}

Tensor product(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
               const Tensor& bias) {
  const Tensor out = product_output(tape, name, a, b);
  product_to(tape, name, a, b, bias, out);
  return out;
}

void product_into(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                  const Tensor& target) {
  tape.launch(name, product_kernel(tape, a, b), {a, b, target}, {target});
}

Tensor linear_over_last(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                        const LinearLayer& layer) {
  if (x.shape.rank() == 2) return linear_matrix(tape, name, x, weight, layer);
  const std::int64_t in = x.shape.last();
  const Tensor tokens = reshape(tape, x, {x.elements() / in, in});
  const Tensor out = linear_matrix(tape, name, tokens, weight, layer);
  Sizes sizes = x.sizes();
  sizes.front() = sizes.front() * layer.gather_input_over / layer.scatter_output_over;
  sizes.back() = out.shape.last();
  return view(tape, out, sizes);
}

Tensor linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out, Bias bias,
              WeightOrder order) {
  const std::int64_t in = x.shape.last();
  if (tape.quantizes()) return quantized_linear(tape, name, x, out, bias);
  const Tensor weight = tape.parameter(
      name + ".weight", order == WeightOrder::out_in ? Sizes{out, in} : Sizes{in, out});
  if (bias == Bias::none) return linear_over_last(tape, name, x, weight, {.order = order});
  const Tensor added = tape.parameter(name + ".bias", {out});
  const std::size_t rank = x.shape.rank();
  if (rank == 2 || (rank == 3 && x.shape.contiguous()) || order == WeightOrder::in_out)
    return linear_over_last(tape, name, x, weight, {.order = order, .bias = added});
  const Tensor product = linear_over_last(tape, name, x, weight, {.order = order});
  return add_(tape, name + ".bias_add", product, added);
}

Tensor linear_with(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight) {
  return linear_over_last(tape, name, x, weight, {});
}

Tensor linear_with(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                   const Tensor& bias) {
  return linear_over_last(tape, name, x, weight, {.bias = bias});
}

Tensor bmm(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = product(tape, name, a, b);
  tape.differentiable({a, b}, out, [=](Tape& t, auto gradients) {
    const Tensor& g = gradients[0];
    t.add_gradient(a, product(t, name + ".grad_a", g, transposed(t, b)));
    t.add_gradient(b, product(t, name + ".grad_b", transposed(t, a), g));
  });
  return out;
}

Tensor matmul(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const auto flattened = [&](const Tensor& x) {
    const Tensor expanded = expand(tape, name, x, x.sizes());
    return reshape(tape, expanded, {x.sizes()[0] * x.sizes()[1], x.shape.last(1), x.shape.last()});
  };
  const Tensor out = bmm(tape, name, flattened(a), flattened(b));
  return view(tape, out, {a.sizes()[0], a.sizes()[1], a.shape.last(1), b.shape.last()});
}

}  // namespace tessera
