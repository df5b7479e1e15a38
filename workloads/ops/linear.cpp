#include "workloads/ops/linear.h"

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// An operand as the products of a linear layer read it: by rows in one product, by columns in
/// another.
struct Operand {
  Tensor rows;
  Tensor columns;  ///< same matrix
};

Operand operand(Tape& tape, const std::string& name, const Tensor& matrix, bool fp8) {
  if (!fp8) return {matrix, matrix};
  const auto copy = [&](const char* order) {
    return tape.make(name + order, StridedShape(matrix.sizes()), Precision::fp8);
  };
  const Operand cast{copy(".fp8"), copy(".fp8_transposed")};
  tape.launch(name + ".fp8", pointwise_kernel(cast.rows, 2), {matrix}, {cast.rows, cast.columns});
  return cast;
}

/// All rows of `part` over tensor-parallel ranks, there after the next wait.
Tensor gathered_rows(Tape& tape, const std::string& name, const Tensor& part, int ranks) {
  const std::int64_t rows = part.sizes()[0] * ranks;
  const bool by_columns = !part.shape.contiguous();
  const Sizes sizes{rows, part.shape.last()};
  const Tensor all = tape.make(
      name, by_columns ? StridedShape(sizes, {1, rows}) : StridedShape(sizes), part.precision);
  tape.collective(OpKind::all_gather, name, GroupKind::tensor, part, all);
  return all;
}

/// This rank's rows of the sum of `partial` over tensor-parallel ranks, there after the next wait.
Tensor scattered_rows(Tape& tape, const std::string& name, const Tensor& partial, int ranks) {
  const Tensor part = tape.make(
      name, StridedShape({partial.sizes()[0] / ranks, partial.shape.last()}), partial.precision);
  tape.collective(OpKind::reduce_scatter, name, GroupKind::tensor, partial, part);
  return part;
}

void add_weight_gradient(Tape& tape, const std::string& name, const Tensor& weight, const Tensor& a,
                         const Tensor& b) {
  const Tensor target = tape.accumulation_target(weight);
  if (target.storage.valid()) {
    product_into(tape, name, a, b, target);
  } else {
    tape.add_gradient(weight, product(tape, name, a, b));
  }
}

}  // namespace

Tensor linear_matrix(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                     const LinearLayer& layer) {
  const bool out_in = layer.order == WeightOrder::out_in;
  const bool fp8 = tape.gemm_precision() == Precision::fp8 && !layer.full_precision;
  const Operand input = operand(tape, name + ".input", x, fp8);
  const Operand matrix = operand(tape, name + ".weight", weight, fp8);
  const Tensor forward_weight = out_in ? transposed(tape, matrix.rows) : matrix.rows;
  const int parts = layer.gather_input_over;
  Tensor rows = input.rows;
  if (parts > 1) {
    rows = gathered_rows(tape, name + ".all_gather", input.rows, parts);
    tape.wait();
  }
  const Tensor out = layer.bias ? product(tape, name, rows, forward_weight, *layer.bias)
                                : product(tape, name, rows, forward_weight);
  const auto rule = [=](Tape& t, std::span<const Tensor> gradients) {
    const Operand g = operand(t, name + ".output_grad", gradients[0], fp8);
    const bool reduces = layer.reduce_gradient_over > 1;
    Tensor columns = input.columns;
    if (parts > 1) columns = gathered_rows(t, name + ".wgrad.all_gather", input.columns, parts);
    Tensor grad_x;
    const auto sum_gradients = [&] {
      t.all_reduce(name + ".dgrad.all_reduce", grad_x, GroupKind::tensor);
    };
    if (t.requires_gradient(x)) {
      const Tensor& w = matrix.columns;
      grad_x = product(t, name + ".dgrad", g.rows, out_in ? w : transposed(t, w));
      if (parts > 1) {
        t.wait();
        grad_x = scattered_rows(t, name + ".dgrad.reduce_scatter", grad_x, parts);
      } else if (reduces) {
        if (layer.overlap_sum) sum_gradients();
      } else {
        t.add_gradient(x, grad_x);
      }
    }
    const std::string wgrad = name + ".wgrad";
    if (out_in) {
      add_weight_gradient(t, wgrad, weight, transposed(t, g.columns), columns);
    } else {
      add_weight_gradient(t, wgrad, weight, transposed(t, columns), g.columns);
    }
    if (reduces || parts > 1) {
      const bool sums_now = parts == 1 && !layer.overlap_sum && grad_x.storage.valid();
      if (sums_now) sum_gradients();
      t.wait();
      if (grad_x.storage.valid()) t.add_gradient(x, grad_x);
    }
    if (layer.bias) {
      t.add_gradient(*layer.bias,
                     sum_to(t, name + ".bias_grad", gradients[0], layer.bias->sizes()));
    }
  };
  if (layer.bias) {
    tape.differentiable({x, weight, *layer.bias}, out, rule);
  } else {
    tape.differentiable({x, weight}, out, rule);
  }
  return out;
}

}  // namespace tessera
