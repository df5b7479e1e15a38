#include "lab/fit/tensor/half_memory_table.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lab/fit/tensor/measured_table.h"

namespace tessera {
namespace {

enum Column : std::size_t { kGpu, kOp, kRows, kColsIn, kColsOut, kBytes, kTime, kTp };
constexpr std::array<std::string_view, kHalfMemoryOps> kNames{
    "add", "gelu", "silu_mul", "rope", "rms_norm", "layer_norm", "embedding"};
constexpr double kBytesPerElement = 2;

/// "add_twice" is two adds.
bool read_op(MeasuredTable& table, HalfMemoryMeasurement& row) {
  std::string_view name = table.text(kOp);
  if (name == "add_twice") {
    row.calls = 2;
    name = "add";
  }
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    table.problem("op = '" + std::string(name) + "' is not known",
                  "add, add_twice, gelu, silu_mul, rope, rms_norm, layer_norm or embedding");
    return false;
  }
  row.op = static_cast<HalfMemoryOp>(found - kNames.begin());
  return true;
}

bool read_shape(MeasuredTable& table, HalfMemoryMeasurement& row) {
  const auto rows = table.extent(kRows), in = table.optional_extent(kColsIn),
             out = table.extent(kColsOut);
  if (!rows || !in || !out) return false;
  row.width = std::max(*in, *out);
  row.shape.rows = static_cast<double>(*rows);
  const double written = kBytesPerElement * row.shape.rows * static_cast<double>(*out);
  row.shape.bytes = 2 * written;  // ids of other GPUs' rows read a row as well, and write zeros
  if (table.text(kBytes).empty()) {
    if (row.op == HalfMemoryOp::embedding) return true;
    table.problem("bytes_min is empty", "state the traffic of each operand once");
    return false;
  }
  const auto bytes = table.extent(kBytes);
  if (bytes) row.shape.bytes = static_cast<double>(*bytes) / row.calls;
  return bytes.has_value();
}

/// The columns that say the shape, in the order of the file: "op,rows,cols_in,...".
std::string shape_key(const MeasuredTable& table) {
  std::string key(table.text(kOp));
  for (const Column column : {kRows, kColsIn, kColsOut, kBytes, kTp})
    key += "," + std::string(table.text(column));
  return key;
}

HalfMemoryTable read_table(MeasuredTable&& table, const std::filesystem::path& path, bool untimed) {
  HalfMemoryTable result{.file = path.filename().string(),
                         .fnv1a = table.hash(),
                         .rows = {},
                         .text = table.file_text(),
                         .header = table.header()};
  while (table.next()) {
    HalfMemoryMeasurement row;
    row.gpu = table.text(kGpu);
    const bool op = read_op(table, row), shape = op && read_shape(table, row);
    const auto seconds = untimed ? table.optional_microseconds(kTime) : table.microseconds(kTime);
    if (!op || !shape || !seconds) continue;
    row.seconds = *seconds;
    row.line = table.row();
    row.held_out = row.calls > 1 || held_out_shape(shape_key(table));
    result.rows.push_back(std::move(row));
  }
  table.finish();
  result.bad_rows = table.bad_rows();
  return result;
}

}  // namespace

std::string_view name_of(HalfMemoryOp op) {
  return kNames[static_cast<std::size_t>(op)];
}

HalfMemoryTable read_half_memory(const std::filesystem::path& path, bool untimed) {
  const std::vector<std::string> columns{"gpu",      "op",        "rows",    "cols_in",
                                         "cols_out", "bytes_min", "time_us", "tp"};
  return untimed ? read_table(MeasuredTable(path, columns, {}), path, true)
                 : read_table(MeasuredTable(path, columns), path, false);
}

}  // namespace tessera
