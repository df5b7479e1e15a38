#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/gpu.h"
#include "predictor/kernel_story.h"
#include "predictor/measured/nearest_measurements.h"

namespace tessera {

/// One kernel, as asked for, and how its prediction came about.
struct KernelReport {
  std::string op;
  /// By the names of kernel files, in their order.
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  GpuSpec gpu;
  KernelStory story;
  std::vector<NearMeasurement> nearest;
  std::string measurements;  ///< name of their file, or why there are none
  std::string tessera_version;
};

/// For people.
std::string kernel_table(const KernelReport& report);

/// Schema `tessera.kernel/1`: times in seconds (`_s`), slowdowns as factors in time.
std::string kernel_json(const KernelReport& report);

/// The sizes that the operator of `call` has, by the names of kernel files, in their order.
std::vector<std::pair<std::string, std::int64_t>> sizes_of(const KernelMeasurement& call);

/// "train", "test", or "none" for rows that are in neither.
std::string_view split_of(const KernelMeasurement& row);

/// "forward", "backward", "forward+backward".
std::string_view direction_words(AttentionDirection direction);

/// "isolated", "graph", "queue".
std::string_view name_of(CallTiming timing);

}  // namespace tessera
