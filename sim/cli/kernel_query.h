#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/training/measurements.h"

namespace tessera {

/// A kernel as the command line names it.
struct KernelOptions {
  std::string op;
  std::map<std::string, std::optional<std::int64_t>> sizes;  ///< by option, without "--"
  std::string layout;                                        ///< "tn", "nn", "nt"; empty = usual
};

/// Every size option: "batch", "m", ...
std::vector<std::string> size_options();

struct KernelQuery {
  KernelMeasurement call;  ///< not timed
  Kernel kernel;
};

/// Throws InputError with everything that is wrong: an unknown operator, sizes that it lacks, has
/// no use for, or that are out of range.
KernelQuery kernel_query(const KernelOptions& options);

}  // namespace tessera
