#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
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
  std::string_view line;  ///< the row as it stands in the file
};

/// A file in the format of measurements/kernels/attention.csv.
struct AttentionTable {
  std::string file;  ///< name without folder
  std::uint64_t fnv1a = 0;
  std::vector<AttentionMeasurement> rows;
  std::shared_ptr<const std::string> text = {};  ///< the file, which `header` and rows refer into
  std::string_view header = {};
};

/// Throws InputError with file:line for malformed rows. `untimed`: rows may state no latency, as 0.
AttentionTable read_attention(const std::filesystem::path& path, bool untimed = false);

}  // namespace tessera
