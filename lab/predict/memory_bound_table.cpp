#include "lab/predict/memory_bound_table.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lab/predict/serving_kernels.h"

namespace tessera {
namespace {

enum Column : std::size_t { kGpu, kOp, kRows, kColsIn, kColsOut, kBytes, kTime };
constexpr std::array<std::string_view, 7> kOpNames{"add",      "gelu",       "silu_mul", "rope",
                                                   "rms_norm", "layer_norm", "embedding"};
constexpr std::int64_t kBytesPerElement = 2;

/// "add_twice" is two adds.
bool read_op(MeasuredTable& table, MemoryBoundRow& row) {
  std::string_view name = table.text(kOp);
  if (name == "add_twice") {
    row.calls = 2;
    name = "add";
  }
  const auto* found = std::ranges::find(kOpNames, name);
  if (found == kOpNames.end()) {
    table.problem("op = '" + std::string(name) + "' is not known",
                  "add, add_twice, gelu, silu_mul, rope, rms_norm, layer_norm or embedding");
    return false;
  }
  row.op = static_cast<MemoryBoundOp>(found - kOpNames.begin());
  return true;
}

bool read_shape(MeasuredTable& table, MemoryBoundRow& row) {
  const auto rows = table.extent(kRows), in = table.optional_extent(kColsIn),
             out = table.extent(kColsOut);
  if (!rows || !in || !out) return false;
  row.rows = *rows;
  row.width = std::max(*in, *out);
  if (!fits(table, static_cast<double>(row.rows) * static_cast<double>(row.width))) return false;
  row.bytes = 2 * kBytesPerElement * *rows * *out;  // ids of other GPUs' rows are read as well
  if (table.text(kBytes).empty()) {
    if (row.op == MemoryBoundOp::embedding) return true;
    table.problem("bytes_min is empty", "state the traffic of each operand once");
    return false;
  }
  const auto bytes = table.extent(kBytes);
  if (bytes) row.bytes = *bytes / row.calls;
  return bytes.has_value();
}

}  // namespace

std::string_view name_of(MemoryBoundOp op) {
  return kOpNames[static_cast<std::size_t>(op)];
}

MemoryBoundTable read_memory_bound(const std::filesystem::path& path) {
  MeasuredTable table(path, {"gpu", "op", "rows", "cols_in", "cols_out", "bytes_min", "time_us"},
                      {});
  MemoryBoundTable result{.rows = {}, .text = table.file_text(), .header = table.header()};
  while (table.next()) {
    MemoryBoundRow row;
    row.gpu = table.text(kGpu);
    const bool op = read_op(table, row), shape = op && read_shape(table, row);
    const auto seconds = table.optional_microseconds(kTime);
    if (!op || !shape || !seconds) continue;
    row.seconds = *seconds;
    row.line = table.row();
    result.rows.push_back(std::move(row));
  }
  table.finish();
  result.bad_rows = table.bad_rows();
  return result;
}

}  // namespace tessera
