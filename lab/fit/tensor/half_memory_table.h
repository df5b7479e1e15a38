#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/fit/tensor/measured_table.h"
#include "predictor/tensor/half_memory_model.h"

namespace tessera {

/// One timed call of a memory-bound operator in 16 bits.
struct HalfMemoryMeasurement {
  std::string gpu;
  HalfMemoryOp op = HalfMemoryOp::add;
  int calls = 1;           ///< 2 where two such kernels were timed together (add_twice)
  HalfMemoryShape shape;   ///< of one call
  std::int64_t width = 0;  ///< elements of a row read or written, the larger number
  double seconds = 0;
  bool held_out = false;  ///< nothing is fitted to it
  std::string_view line;  ///< the row as it stands in the file
};

/// A file in the format of measurements/kernels/memory_bound_fp16.csv.
struct HalfMemoryTable {
  std::string file;  ///< name without folder
  std::uint64_t fnv1a = 0;
  std::vector<HalfMemoryMeasurement> rows;
  std::shared_ptr<const std::string> text = {};  ///< the file, which `header` and rows refer into
  std::string_view header = {};
  std::vector<BadRow> bad_rows = {};
};

/// Throws InputError with file:line for malformed rows. `untimed`: rows may state no time, as 0,
/// and those that cannot be read are kept apart.
/// Traffic that the file does not state (an embedding whose vocabulary is split) is that of an
/// unsplit one: every id reads and writes a row.
HalfMemoryTable read_half_memory(const std::filesystem::path& path, bool untimed = false);

}  // namespace tessera
