#include "workloads/ops/cast_operand.h"

#include <vector>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

bool is_fp4(const Tape& tape) {
  return tape.gemm_precision() == Precision::fp4;
}

/// ".fp8" or ".fp4".
std::string suffix(const Tape& tape) {
  return "." + std::string(name_of(tape.gemm_precision()));
}

Tensor copy_of(Tape& tape, const std::string& name, const Tensor& matrix) {
  return tape.make(name, StridedShape(matrix.sizes()), tape.gemm_precision());
}

/// The largest absolute value, by which a matrix is scaled.
Tensor largest(Tape& tape, const std::string& name, const Tensor& matrix) {
  const Tensor value = tape.make(name + ".largest", StridedShape({1}), Precision::fp32);
  tape.launch(name + ".largest", reduction_kernel(matrix), {matrix}, {value});
  return value;
}

bool finds_largest(const Tape& tape) {
  return is_fp4(tape) || tape.scales_by_largest();
}

/// Both orders by one kernel.
void cast_into(Tape& tape, const std::string& name, const Tensor& matrix, const Operand& cast) {
  std::vector<Tensor> reads{matrix};
  if (finds_largest(tape)) reads.push_back(largest(tape, name, matrix));
  tape.launch(name + suffix(tape), pointwise_kernel(cast.rows, 2), reads,
              std::vector{cast.rows, cast.columns});
}

/// By rows, and turned by columns.
void cast_turned(Tape& tape, const std::string& name, const Tensor& matrix, const Operand& cast) {
  const Tensor value = largest(tape, name, matrix);
  tape.launch(name + ".fp4", pointwise_kernel(cast.rows, 2), {matrix, value}, {cast.rows});
  tape.launch(name + ".hadamard_fp4", pointwise_kernel(cast.columns, 2), {matrix, value},
              {cast.columns});
}

Operand copies(Tape& tape, const std::string& name, const Tensor& matrix) {
  return {copy_of(tape, name + suffix(tape), matrix),
          copy_of(tape, name + suffix(tape) + "_transposed", matrix)};
}

/// In buffers: the first micro-batch of a step makes them for all others.
Operand kept_weight(Tape& tape, const std::string& name, const Tensor& weight) {
  const auto buffer = [&](const char* order) {
    return tape.buffer(name + suffix(tape) + order, weight.sizes(), tape.gemm_precision());
  };
  const Operand cast{buffer(""), buffer("_transposed")};
  tape.keeps_copies_of(weight);
  cast_into(tape, name, weight, cast);
  return cast;
}

}  // namespace

Operand cast_both_orders(Tape& tape, const std::string& name, const Tensor& matrix) {
  const Operand cast = copies(tape, name, matrix);
  is_fp4(tape) ? cast_turned(tape, name, matrix, cast) : cast_into(tape, name, matrix, cast);
  return cast;
}

SavedOperand::SavedOperand(Tape& tape, const std::string& name, const Tensor& matrix,
                           const Reading& reading)
    : name_(name), matrix_(matrix), cast_{matrix, matrix} {
  if (!reading.casts) return;
  const bool both = (tape.casts_both_orders() || is_fp4(tape)) && !reading.casts_again;
  if (reading.is_weight && tape.keeps_cast_weights()) {
    cast_ = kept_weight(tape, name, matrix);
  } else if (reading.is_weight && tape.gathers_fp8()) {
    cast_ = {tape.gathered_in_fp8(matrix), Tensor()};
    turns_ = true;
  } else if (reading.is_weight && is_fp4(tape)) {
    cast_ = copies(tape, name, matrix);
    cast_into(tape, name, matrix, cast_);
  } else if (both) {
    cast_ = cast_both_orders(tape, name, matrix);
  } else {
    if (finds_largest(tape)) largest_ = largest(tape, name, matrix);
    cast_ = {again(tape, ""), Tensor()};
  }
}

/// What came as FP8 is copied into the other order.
Tensor SavedOperand::turned(Tape& tape) const {
  const std::string name = name_ + suffix(tape) + "_transposed";
  const Tensor copy = copy_of(tape, name, matrix_);
  tape.launch(name, pointwise_kernel(copy, 0, KernelKind::copy), {cast_.rows}, {copy});
  return copy;
}

Tensor SavedOperand::again(Tape& tape, const char* order) const {
  const std::string name = name_ + suffix(tape) + order;
  const Tensor copy = copy_of(tape, name, matrix_);
  std::vector<Tensor> reads{matrix_};
  if (largest_.storage.valid()) reads.push_back(largest_);
  tape.launch(name, pointwise_kernel(copy, 2), reads, std::vector{copy});
  return copy;
}

}  // namespace tessera
