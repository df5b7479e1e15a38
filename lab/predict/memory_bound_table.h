#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/fit/tensor/measured_table.h"

namespace tessera {

/// Memory-bound operators of an LLM server, as they were timed in 16 bits.
enum class MemoryBoundOp : std::uint8_t {
  add,       ///< residual: two tensors in, one out
  gelu,      ///< one in, one out
  silu_mul,  ///< gated activation: reads two halves of a row, writes one
  rope,      ///< rotary position embedding of Q and K, in place
  rms_norm,
  layer_norm,
  embedding,  ///< gather of whole rows
};
std::string_view name_of(MemoryBoundOp op);

/// One timed call.
struct MemoryBoundRow {
  std::string gpu;
  MemoryBoundOp op = MemoryBoundOp::add;
  int calls = 1;           ///< 2 where two such kernels were timed together (add_twice)
  std::int64_t bytes = 0;  ///< that one of them reads and writes, each operand once
  std::int64_t rows = 0;   ///< tokens
  std::int64_t width = 0;  ///< elements of a row read or written, the larger number
  double seconds = 0;
  std::string_view line;  ///< the row as it stands in the file
};

/// A file in the format of measurements/kernels/memory_bound_fp16.csv.
struct MemoryBoundTable {
  std::vector<MemoryBoundRow> rows;
  std::shared_ptr<const std::string> text = {};  ///< the file, which `header` and rows refer into
  std::string_view header = {};
  std::vector<BadRow> bad_rows = {};  ///< rows that could not be read, and why
};

/// Rows may state no time, as 0. Traffic that the file does not state (an embedding whose
/// vocabulary is split) is that of an unsplit one: every id reads and writes a row.
MemoryBoundTable read_memory_bound(const std::filesystem::path& path);

}  // namespace tessera
