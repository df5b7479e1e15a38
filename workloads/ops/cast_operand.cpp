#include "workloads/ops/cast_operand.h"

#include <algorithm>
#include <utility>
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

constexpr std::int64_t tiles_along(std::int64_t all, std::int64_t each) {
  return (all + each - 1) / each;
}

/// Of blocks a byte for the numbers that share one, which bytes of NVFP4 hold already; of tiles, in
/// either order, 4 bytes for those of a row, of weights for a square of them.
Bytes scales_of(const Tape& tape, const Tensor& matrix, bool is_weight) {
  constexpr std::int64_t kScale = 4;
  if (is_fp4(tape)) return {};
  if (tape.numbers_per_scale() > 0)
    return Bytes(tiles_along(matrix.elements(), tape.numbers_per_scale()));
  if (tape.tile() == 0) return {};
  const std::int64_t across = tiles_along(matrix.shape.last(), tape.tile());
  const std::int64_t rows = matrix.elements() / matrix.shape.last();
  return Bytes(kScale * across * (is_weight ? tiles_along(rows, tape.tile()) : rows));
}

Tensor copy_of(Tape& tape, const std::string& name, const Tensor& matrix, bool is_weight) {
  return tape.make(name, StridedShape(matrix.sizes()), tape.gemm_precision(),
                   scales_of(tape, matrix, is_weight));
}

bool finds_largest(const Tape& tape) {
  return is_fp4(tape) || tape.scales_by_largest();
}

/// Launched from a call that launches more.
void launch_within(Tape& tape, const std::string& name, const Tensor& value, KernelKind kind) {
  const int calls = tape.set_calls_per_launch(0);
  tape.launch(name, pointwise_kernel(value, 0, kind), {}, {value});
  tape.set_calls_per_launch(calls);
}

/// The largest absolute value, by which a matrix is scaled. Transformer Engine's Float8 scaling
/// sets it to zero first, and makes the scale of it in a kernel of its own.
Tensor largest(Tape& tape, const std::string& name, const Tensor& matrix) {
  const bool of_engine = tape.casts_both_orders() && !is_fp4(tape);
  const Tensor value = tape.make(name + ".largest", StridedShape({1}), Precision::fp32);
  if (of_engine) launch_within(tape, name + ".largest.zero", value, KernelKind::fill);
  tape.launch(name + ".largest", reduction_kernel(matrix), {matrix}, {value});
  if (of_engine) launch_within(tape, name + ".scale", value, KernelKind::elementwise);
  return value;
}

/// The rows that are cast at a time.
std::vector<Tensor> parts_of(const Tensor& matrix, const CastParts& parts) {
  if (parts.empty()) return {matrix};
  std::vector<Tensor> result;
  for (const std::int64_t rows : parts) {
    if (rows == 0) continue;
    Sizes sizes = matrix.sizes();
    sizes[0] = rows;
    result.push_back(matrix);
    result.back().shape = StridedShape(sizes);
  }
  return result;
}

/// Both orders by one kernel, each with its scales.
void cast_part(Tape& tape, const std::string& name, const Tensor& matrix, const Operand& cast,
               bool is_weight) {
  std::vector<Access> reads{whole(matrix)};
  if (finds_largest(tape)) reads.push_back(whole(largest(tape, name, matrix)));
  const Bytes scales = scales_of(tape, matrix, is_weight);
  std::vector<Access> copies{{cast.rows.storage, cast.rows.traffic() + scales}};
  if (cast.columns.storage != cast.rows.storage)
    copies.push_back({cast.columns.storage, cast.columns.traffic() + scales});
  tape.launch_partial(name + suffix(tape), pointwise_kernel(cast.rows, 2), std::move(reads),
                      std::move(copies));
}

void cast_into(Tape& tape, const std::string& name, const Tensor& matrix, const Operand& cast,
               const Reading& reading) {
  const std::vector<Tensor> from = parts_of(matrix, reading.parts);
  const std::vector<Tensor> rows = parts_of(cast.rows, reading.parts);
  const std::vector<Tensor> columns = parts_of(cast.columns, reading.parts);
  for (std::size_t i = 0; i < from.size(); ++i)
    cast_part(tape, name, from[i], {rows[i], columns[i]}, reading.is_weight);
}

/// By rows, and turned by columns.
void cast_turned(Tape& tape, const std::string& name, const Tensor& matrix, const Operand& cast,
                 const CastParts& parts) {
  const std::vector<Tensor> from = parts_of(matrix, parts), rows = parts_of(cast.rows, parts);
  const std::vector<Tensor> columns = parts_of(cast.columns, parts);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Tensor value = largest(tape, name, from[i]);
    tape.launch(name + ".fp4", pointwise_kernel(rows[i], 2), {from[i], value}, {rows[i]});
    tape.launch(name + ".hadamard_fp4", pointwise_kernel(columns[i], 2), {from[i], value},
                {columns[i]});
  }
}

/// One copy is read in both orders.
bool is_one_copy(const Tape& tape) {
  return !tape.transposes() && tape.casts_both_orders() && !is_fp4(tape);
}

Operand copies(Tape& tape, const std::string& name, const Tensor& matrix, bool is_weight) {
  const Tensor rows = copy_of(tape, name + suffix(tape), matrix, is_weight);
  if (is_one_copy(tape)) return {rows, rows};
  return {rows, copy_of(tape, name + suffix(tape) + "_transposed", matrix, is_weight)};
}

/// In buffers: the first micro-batch of a step makes them for all others.
Operand kept_weight(Tape& tape, const std::string& name, const Tensor& weight,
                    const Reading& reading) {
  const auto buffer = [&](const char* order) {
    return tape.buffer(name + suffix(tape) + order, weight.sizes(), tape.gemm_precision(),
                       scales_of(tape, weight, true));
  };
  const Tensor rows = buffer("");
  const Operand cast{rows, is_one_copy(tape) ? rows : buffer("_transposed")};
  tape.keeps_copies_of(weight);
  cast_into(tape, name, weight, cast, reading);
  return cast;
}

/// Of what is no weight, or of a weight that every pass casts anew.
Operand cast_for(Tape& tape, const std::string& name, const Tensor& matrix,
                 const Reading& reading) {
  const Operand cast = copies(tape, name, matrix, reading.is_weight);
  is_fp4(tape) ? cast_turned(tape, name, matrix, cast, reading.parts)
               : cast_into(tape, name, matrix, cast, reading);
  return cast;
}

}  // namespace

void order_scales(Tape& tape, const std::string& name, const std::vector<Tensor>& operands) {
  if (tape.numbers_per_scale() == 0) return;
  for (const Tensor& operand : operands) {
    const std::int64_t scales = operand.elements() / tape.numbers_per_scale();
    const Sizes sizes{std::max<std::int64_t>(1, scales)};
    const Tensor ordered = tape.make(name + ".scales", StridedShape(sizes), Precision::int8);
    const int calls = tape.set_calls_per_launch(0);
    tape.launch_partial(name + ".scales", pointwise_kernel(ordered, 0, KernelKind::copy),
                        {{operand.storage, ordered.traffic()}},
                        {{ordered.storage, ordered.traffic()}});
    tape.set_calls_per_launch(calls);
  }
}

Operand cast_both_orders(Tape& tape, const std::string& name, const Tensor& matrix,
                         const CastParts& parts) {
  return cast_for(tape, name, matrix, {.casts = true, .parts = parts});
}

SavedOperand::SavedOperand(Tape& tape, const std::string& name, const Tensor& matrix,
                           const Reading& reading)
    : name_(name), matrix_(matrix), cast_{matrix, matrix}, parts_(reading.parts) {
  if (!reading.casts) return;
  const bool both = (tape.casts_both_orders() || is_fp4(tape)) && !reading.casts_again;
  if (reading.is_weight && tape.keeps_cast_weights()) {
    cast_ = kept_weight(tape, name, matrix, reading);
  } else if (reading.is_weight && tape.gathers_fp8()) {
    cast_ = {tape.gathered_in_fp8(matrix), Tensor()};
    turns_ = true;
  } else if (reading.is_weight && is_fp4(tape)) {
    cast_ = copies(tape, name, matrix, true);
    cast_into(tape, name, matrix, cast_, reading);
  } else if (both) {
    cast_ = cast_for(tape, name, matrix, reading);
  } else {
    if (finds_largest(tape))
      for (const Tensor& part : parts_of(matrix, parts_))
        largest_.push_back(largest(tape, name, part));
    cast_ = {again(tape, ""), Tensor()};
  }
}

/// What came as FP8 is copied into the other order. Transformer Engine's block scales are another
/// matrix in each order: backward gathers its own (Megatron-FSDP, transpose_weight_buffer;
/// recalled).
Tensor SavedOperand::turned(Tape& tape) const {
  const bool comes_by_columns = tape.casts_both_orders() && tape.numbers_per_scale() > 0;
  if (comes_by_columns || is_one_copy(tape)) return cast_.rows;
  const std::string name = name_ + suffix(tape) + "_transposed";
  const Tensor copy = copy_of(tape, name, matrix_, true);
  tape.launch(name, pointwise_kernel(copy, 0, KernelKind::copy), {cast_.rows}, {copy});
  return copy;
}

Tensor SavedOperand::again(Tape& tape, const char* order) const {
  const std::string name = name_ + suffix(tape) + order;
  const Tensor copy = copy_of(tape, name, matrix_, false);
  const std::vector<Tensor> from = parts_of(matrix_, parts_), to = parts_of(copy, parts_);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<Tensor> reads{from[i]};
    if (!largest_.empty()) reads.push_back(largest_[i]);
    tape.launch(name, pointwise_kernel(to[i], 2), reads, std::vector{to[i]});
  }
  return copy;
}

}  // namespace tessera
