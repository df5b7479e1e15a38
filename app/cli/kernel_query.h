#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/gpu.h"
#include "predictor/measured/measurements.h"

namespace tessera {

/// A kernel as the command line names it.
struct KernelOptions {
  std::string op;
  std::map<std::string, std::optional<std::int64_t>> sizes;  ///< by option, without "--"
  std::string layout;                                        ///< "tn", "nn", "nt"; empty = usual
  std::string precision;                                     ///< empty = fp32; attention: bf16
  std::string implementation;  ///< of attention; empty = the fastest that the GPU runs
  std::string direction;       ///< of attention; empty = forward
  std::string mask;            ///< of attention: "causal" (also empty) or "full"
  std::string groups;          ///< rows of each group of a grouped product: "128,64,300"
};

/// Every size option: "batch", "m", ...
std::vector<std::string> size_options();

struct KernelQuery {
  std::string op;
  /// By the names of kernel files, in their order.
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::optional<KernelMeasurement> call;  ///< not timed; empty for attention and grouped products
  Kernel kernel;
};

/// Throws InputError with everything that is wrong: an unknown operator, sizes that it lacks, has
/// no use for, or that are out of range.
KernelQuery kernel_query(const KernelOptions& options, const GpuSpec& gpu);

/// Fills in what `text` says: words such as "bf16 gemm 4096x4096x1024", "bf16 softmax 8192x1024",
/// "flash3 attention 4x32x4096x128 backward" (batch, heads, sequence, head size), "fp16 bmm
/// 8x512x512x64", "bf16 grouped_gemm 100,28,0 4096x1024", and size=number. Throws InputError for
/// a word that it does not know.
void read_kernel_text(const std::string& text, KernelOptions& options);

}  // namespace tessera
