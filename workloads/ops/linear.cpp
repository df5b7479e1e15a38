#include "workloads/ops/linear.h"

#include <span>
#include <vector>

#include "workloads/mixed_precision.h"
#include "workloads/ops/cast_operand.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/python_calls.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// The first or last `rows` rows of a matrix.
Tensor window(Tape& tape, const Tensor& matrix, std::int64_t rows) {
  return tape.alias(matrix, StridedShape({rows, matrix.shape.last()}));
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

/// This rank's rows of a sum over tensor-parallel ranks, not yet there.
Tensor rows_of_sum(Tape& tape, const std::string& name, const Tensor& partial, int ranks) {
  return tape.make(name, StridedShape({partial.sizes()[0] / ranks, partial.shape.last()}),
                   partial.precision);
}

/// The same, there after the next wait.
Tensor scattered_rows(Tape& tape, const std::string& name, const Tensor& partial, int ranks) {
  const Tensor part = rows_of_sum(tape, name, partial, ranks);
  tape.collective(OpKind::reduce_scatter, name, GroupKind::tensor, partial, part);
  return part;
}

/// How the product of rows that a gather brings goes with it.
enum class Arrival {
  whole,          ///< behind the gather
  chunks,         ///< one chunk is multiplied while the next is on its way
  own_rows_first  ///< this rank's rows beside the gather, the others' behind it
};

/// The rows of each product, and how many products run ahead of the gather's end.
struct Portions {
  std::vector<std::int64_t> rows;
  std::size_t ahead = 0;
};
Portions portions_of(std::int64_t rows, int ranks, Arrival arrival) {
  const std::int64_t own = rows / ranks;
  if (arrival == Arrival::whole) return {{rows}, 0};
  if (arrival == Arrival::chunks) return {{rows - own, own}, 1};
  if (ranks == 2) return {{own, own}, 1};
  const std::int64_t before = (rows - own) / 2;
  return {{own, before, rows - own - before}, 1};
}

/// A product of rows of which a gather brings all but this rank's, a kernel per portion.
Tensor product_of_arriving(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                           const std::optional<Tensor>& bias, const Portions& portions) {
  const Tensor out = product_output(tape, name, a, b);
  for (std::size_t i = 0; i < portions.rows.size(); ++i) {
    if (i == portions.ahead) tape.wait();
    const std::int64_t rows = portions.rows[i];
    product_to(tape, name, window(tape, a, rows), b, bias, window(tape, out, rows));
  }
  return out;
}

/// This rank's rows of the sum of a product, whose rows leave chunk by chunk as they are there: the
/// transfer of the first chunks runs beside the product of the others, that of the last behind it.
Tensor scattered_product(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                         int ranks) {
  const std::string scatter = name + ".reduce_scatter";
  const Tensor out = product_output(tape, name, a, b);
  const Tensor part = rows_of_sum(tape, scatter, out, ranks);
  const std::int64_t chunk = part.sizes()[0];
  const std::int64_t others = out.sizes()[0] - chunk;
  product_to(tape, name, window(tape, a, chunk), b, std::nullopt, window(tape, out, chunk));
  tape.collective(OpKind::reduce_scatter, scatter, GroupKind::tensor, window(tape, out, others),
                  part);
  product_to(tape, name, window(tape, a, others), b, std::nullopt, window(tape, out, others));
  tape.collective(OpKind::reduce_scatter, scatter, GroupKind::tensor, window(tape, out, chunk),
                  part);
  tape.wait();
  return part;
}

/// One layer: its products, and the communication at their ends.
class Linear {
 public:
  Linear(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
         const LinearLayer& layer)
      : name_(name),
        x_(x),
        weight_(weight),
        layer_(layer),
        cast_(is_cast_for_products(tape.gemm_precision()) && !layer.full_precision),
        input_(tape, name + ".input", x, {.casts = cast_}),
        matrix_(tape, name + ".weight", weight, {.casts = cast_, .is_weight = true}) {}

  /// What it makes, and the input as its product read it.
  struct Result {
    Tensor out, rows;
  };
  Result forward(Tape& tape) const;
  void backward(Tape& tape, const Tensor& gradient, const Tensor& rows) const;
  bool gathers() const { return layer_.gather_input_over > 1; }
  bool scatters() const { return layer_.scatter_output_over > 1; }

 private:
  bool out_in() const { return layer_.order == WeightOrder::out_in; }
  bool reduces() const { return layer_.reduce_gradient_over > 1; }
  /// In FP8 the gathered gradient is cast ahead of its products.
  Arrival gradient_arrival(Tape& tape) const {
    const bool beside = scatters() && !cast_ && tape.requires_gradient(x_);
    return beside ? arrival() : Arrival::whole;
  }
  Arrival arrival() const {
    if (layer_.in_chunks) return Arrival::chunks;
    return layer_.own_rows_first ? Arrival::own_rows_first : Arrival::whole;
  }
  Tensor input_columns(Tape& tape, const Tensor& rows) const;
  Tensor multiply(Tape& tape, const Tensor& rows, const Tensor& matrix) const;
  void order_scales_for(Tape& tape, const std::string& name, const Tensor& a,
                        const Tensor& b) const {
    if (cast_) order_scales(tape, name, {a, b});
  }
  Tensor data_gradient(Tape& tape, const Tensor& gradient) const;
  void add_weight_gradient(Tape& tape, const Tensor& gradient, const Tensor& columns) const;
  void sum_over_ranks(Tape& tape, const Tensor& data_gradient) const {
    tape.all_reduce(name_ + ".dgrad.all_reduce", data_gradient, GroupKind::tensor);
  }

  std::string name_;
  Tensor x_;
  Tensor weight_;
  LinearLayer layer_;
  bool cast_;
  SavedOperand input_;
  SavedOperand matrix_;
};

Linear::Result Linear::forward(Tape& tape) const {
  const Tensor matrix = out_in() ? transposed(tape, matrix_.rows()) : matrix_.rows();
  if (scatters()) {
    const int ranks = layer_.scatter_output_over;
    order_scales_for(tape, name_, input_.rows(), matrix);
    if (layer_.in_chunks)
      return {scattered_product(tape, name_, input_.rows(), matrix, ranks), input_.rows()};
    const Tensor partial = product(tape, name_, input_.rows(), matrix);
    const Tensor part = scattered_rows(tape, name_ + ".reduce_scatter", partial, ranks);
    tape.wait();
    return {part, input_.rows()};
  }
  if (!gathers()) {
    order_scales_for(tape, name_, input_.rows(), matrix);
    return {multiply(tape, input_.rows(), matrix), input_.rows()};
  }
  const int ranks = layer_.gather_input_over;
  const Tensor rows = gathered_rows(tape, name_ + ".all_gather", input_.rows(), ranks);
  if (layer_.own_rows_first && !layer_.keeps_gathered) tape.lies_in_shared_buffer(rows);
  if (arrival() != Arrival::whole)
    return {product_of_arriving(tape, name_, rows, matrix, layer_.bias,
                                portions_of(rows.sizes()[0], ranks, arrival())),
            rows};
  tape.wait();
  order_scales_for(tape, name_, rows, matrix);
  return {multiply(tape, rows, matrix), rows};
}

/// The input as the weight gradient reads it; what a gather brings is there after the next wait.
Tensor Linear::input_columns(Tape& tape, const Tensor& rows) const {
  if (!gathers()) return input_.columns(tape);
  if (layer_.keeps_gathered && !cast_) return rows;
  const Tensor rows_again = gathered_rows(tape, name_ + ".wgrad.all_gather", input_.columns(tape),
                                          layer_.gather_input_over);
  if (layer_.own_rows_first) tape.lies_in_shared_buffer(rows_again);
  return rows_again;
}

Tensor Linear::multiply(Tape& tape, const Tensor& rows, const Tensor& matrix) const {
  return layer_.bias ? product(tape, name_, rows, matrix, *layer_.bias)
                     : product(tape, name_, rows, matrix);
}

void Linear::backward(Tape& tape, const Tensor& gradient, const Tensor& rows) const {
  Tensor all = gradient;
  if (scatters()) {
    all = gathered_rows(tape, name_ + ".grad.all_gather", gradient, layer_.scatter_output_over);
    if (gradient_arrival(tape) == Arrival::whole) tape.wait();
  }
  const Operand g = cast_ ? cast_both_orders(tape, name_ + ".output_grad", all) : Operand{all, all};
  const bool trains = tape.requires_gradient(weight_);
  const Tensor columns = trains ? input_columns(tape, rows) : Tensor();
  Tensor grad_x;
  if (tape.requires_gradient(x_)) grad_x = data_gradient(tape, g.rows);
  if (trains) add_weight_gradient(tape, g.columns, columns);
  if (reduces() || gathers()) {
    const bool sums_now = !gathers() && !layer_.overlap_sum && grad_x.storage.valid();
    if (sums_now) sum_over_ranks(tape, grad_x);
    tape.wait();
    if (grad_x.storage.valid()) tape.add_gradient(x_, grad_x);
  }
  if (layer_.bias && tape.requires_gradient(*layer_.bias)) {
    tape.add_gradient(*layer_.bias,
                      sum_to(tape, name_ + ".bias_grad", gradient, layer_.bias->sizes()));
  }
}

/// What is still on its way to or from other ranks is there after the next wait.
Tensor Linear::data_gradient(Tape& tape, const Tensor& gradient) const {
  const std::string name = name_ + ".dgrad";
  const Tensor columns = matrix_.columns(tape);
  const Tensor matrix = out_in() ? columns : transposed(tape, columns);
  const Arrival arrival = gradient_arrival(tape);
  order_scales_for(tape, name, gradient, matrix);
  const Tensor grad_x = arrival == Arrival::whole
                            ? product(tape, name, gradient, matrix)
                            : product_of_arriving(tape, name, gradient, matrix, std::nullopt,
                                                  portions_of(gradient.sizes()[0],
                                                              layer_.scatter_output_over, arrival));
  if (gathers()) {
    tape.wait();
    return scattered_rows(tape, name + ".reduce_scatter", grad_x, layer_.gather_input_over);
  }
  if (!reduces()) {
    tape.add_gradient(x_, grad_x);
  } else if (layer_.overlap_sum) {
    sum_over_ranks(tape, grad_x);
  }
  return grad_x;
}

void Linear::add_weight_gradient(Tape& tape, const Tensor& gradient, const Tensor& columns) const {
  const std::string name = name_ + ".wgrad";
  const Tensor a = transposed(tape, out_in() ? gradient : columns);
  const Tensor& b = out_in() ? columns : gradient;
  order_scales_for(tape, name, a, b);
  const Tensor target = tape.accumulation_target(weight_);
  if (target.storage.valid()) {
    product_into(tape, name, a, b, target);
  } else {
    tape.add_gradient(weight_, product(tape, name, a, b));
  }
}

}  // namespace

Tensor linear_matrix(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                     const LinearLayer& layer) {
  const Linear linear(tape, name, x, weight, layer);
  const auto [out, rows] = linear.forward(tape);
  tape.python_calls(linear.gathers() ? kColumnForward : linear.scatters() ? kRowForward : 0);
  std::vector<Tensor> inputs{x, weight};
  if (layer.bias) inputs.push_back(*layer.bias);
  tape.differentiable(inputs, std::span(&out, 1), [linear, rows = rows](Tape& t, auto gradients) {
    linear.backward(t, gradients[0], rows);
    t.python_calls(linear.gathers() ? kColumnBackward : linear.scatters() ? kRowBackward : 0);
  });
  return out;
}

}  // namespace tessera
