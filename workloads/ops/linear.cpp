#include "workloads/ops/linear.h"

#include <vector>

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// An operand as the products of a linear layer read it: by rows in one product, by columns in
/// another, both of the same matrix.
struct Operand {
  Tensor rows;
  Tensor columns;
};

Tensor fp8_copy(Tape& tape, const std::string& name, const Tensor& matrix) {
  return tape.make(name, StridedShape(matrix.sizes()), Precision::fp8);
}

/// The largest absolute value, by which a matrix is scaled.
Tensor largest(Tape& tape, const std::string& name, const Tensor& matrix) {
  const Tensor value = tape.make(name + ".largest", StridedShape({1}), Precision::fp32);
  tape.launch(name + ".largest", reduction_kernel(matrix), {matrix}, {value});
  return value;
}

/// Both orders by one kernel.
Operand cast_twice(Tape& tape, const std::string& name, const Tensor& matrix) {
  const Operand cast{fp8_copy(tape, name + ".fp8", matrix),
                     fp8_copy(tape, name + ".fp8_transposed", matrix)};
  std::vector<Tensor> reads{matrix};
  if (tape.scales_by_largest()) reads.push_back(largest(tape, name, matrix));
  tape.launch(name + ".fp8", pointwise_kernel(cast.rows, 2), reads,
              std::vector{cast.rows, cast.columns});
  return cast;
}

/// A matrix that forward reads by rows and backward by columns.
class SavedOperand {
 public:
  SavedOperand(Tape& tape, const std::string& name, const Tensor& matrix, bool fp8)
      : name_(name), matrix_(matrix), cast_{matrix, matrix} {
    if (!fp8) return;
    if (!tape.scales_by_largest()) {
      cast_ = cast_twice(tape, name, matrix);
      return;
    }
    largest_ = largest(tape, name, matrix);
    cast_ = {cast(tape, ".fp8"), Tensor()};
  }
  const Tensor& rows() const { return cast_.rows; }
  /// Torchao keeps the matrix and casts it again in backward; else the copy that forward made.
  Tensor columns(Tape& tape) const {
    return cast_.columns.storage.valid() ? cast_.columns : cast(tape, ".fp8_transposed");
  }

 private:
  Tensor cast(Tape& tape, const char* order) const {
    const Tensor copy = fp8_copy(tape, name_ + order, matrix_);
    tape.launch(name_ + order, pointwise_kernel(copy, 2), {matrix_, largest_}, {copy});
    return copy;
  }

  std::string name_;
  Tensor matrix_;
  Operand cast_;
  Tensor largest_;
};

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
  const SavedOperand input(tape, name + ".input", x, fp8);
  const SavedOperand matrix(tape, name + ".weight", weight, fp8);
  const Tensor forward_weight = out_in ? transposed(tape, matrix.rows()) : matrix.rows();
  const int parts = layer.gather_input_over;
  Tensor rows = input.rows();
  if (parts > 1) {
    rows = gathered_rows(tape, name + ".all_gather", input.rows(), parts);
    tape.wait();
  }
  const Tensor out = layer.bias ? product(tape, name, rows, forward_weight, *layer.bias)
                                : product(tape, name, rows, forward_weight);
  const auto rule = [=](Tape& t, std::span<const Tensor> gradients) {
    const Operand g = fp8 ? cast_twice(t, name + ".output_grad", gradients[0])
                          : Operand{gradients[0], gradients[0]};
    const bool reduces = layer.reduce_gradient_over > 1;
    Tensor columns = input.columns(t);
    if (parts > 1) columns = gathered_rows(t, name + ".wgrad.all_gather", columns, parts);
    Tensor grad_x;
    const auto sum_gradients = [&] {
      t.all_reduce(name + ".dgrad.all_reduce", grad_x, GroupKind::tensor);
    };
    if (t.requires_gradient(x)) {
      const Tensor w = matrix.columns(t);
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
