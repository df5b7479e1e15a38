#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "workloads/attention.h"

namespace tessera {

/// One timed call of attention.
struct AttentionMeasurement {
  std::string gpu;
  std::string stack;  ///< software that was timed, as the file names it
  AttentionCall call;
  double seconds = 0;
  bool served = false;    ///< timed inside a server: may write the KV cache and rearrange Q, K, V
  bool by_eye = false;    ///< read from the printed bar labels of a figure
  bool fused = true;      ///< false: PyTorch's unfused products and softmax
  bool held_out = false;  ///< nothing is fitted to it
};

/// A file in the format of measurements/kernels/attention.csv.
struct AttentionTable {
  std::string file;  ///< name without folder
  std::uint64_t fnv1a = 0;
  std::vector<AttentionMeasurement> rows;
};

/// Throws InputError with file:line for malformed rows.
AttentionTable read_attention(const std::filesystem::path& path);

}  // namespace tessera
