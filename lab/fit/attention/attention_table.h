#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/fit/tensor/measured_table.h"
#include "workloads/program/attention.h"

namespace tessera {

/// One timed call of attention.
struct AttentionMeasurement {
  std::string gpu;
  std::string stack;  ///< software that was timed, as the file names it
  AttentionCall call;
  double seconds = 0;
  bool served = false;      ///< timed inside a server: may write the KV cache and rearrange Q, K, V
  bool by_eye = false;      ///< read from the printed bar labels of a figure
  bool fused = true;        ///< false: PyTorch's unfused products and softmax
  bool held_out = false;    ///< nothing is fitted to it
  bool known = true;        ///< false: software that nobody assigned an implementation to
  std::int64_t window = 0;  ///< keys that a query sees at most; 0 = all
  bool eight_bits = false;  ///< operands in fp8
  bool eight_bit_cache = false;  ///< keys and values cached in fp8
  std::string_view line;         ///< the row as it stands in the file
};

/// A file in the format of measurements/kernels/attention.csv.
struct AttentionTable {
  std::string file;  ///< name without folder
  std::uint64_t fnv1a = 0;
  std::vector<AttentionMeasurement> rows;
  std::shared_ptr<const std::string> text = {};  ///< the file, which `header` and rows refer into
  std::string_view header = {};
  std::vector<BadRow> bad_rows = {};
};

/// Throws InputError with file:line for malformed rows and software that is not known.
AttentionTable read_attention(const std::filesystem::path& path);

/// The same to predict: rows may state no latency (as 0), name any software, a window and an 8-bit
/// format; those that cannot be read are kept apart.
AttentionTable read_attention_to_predict(const std::filesystem::path& path);

}  // namespace tessera
