#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "predictor/tensor/tensor_gemm_model.h"

namespace tessera {

/// Library version, and way of timing, that rows come from; on one GPU, in one number format.
struct TensorStack {
  std::string name;
  int gpu = 0;  ///< position in TensorData::gpus
  Precision precision = Precision::bf16;
  TensorTraits traits;
};

/// One timed product.
struct TensorSample {
  int stack = 0;  ///< position in TensorData::stacks
  TensorShape shape;
  double seconds = 0;  ///< start and drain of the kernel included, launch gap of the host not
};

/// Half-precision products as measurements/kernels/tensor_core.csv holds them.
struct TensorData {
  std::string file;         ///< name without folder
  std::uint64_t fnv1a = 0;  ///< of the whole file
  std::vector<GpuSpec> gpus;
  std::vector<TensorStack> stacks;
  std::vector<TensorSample> samples;  ///< in file order
};

/// Reads the columns gpu, dtype, m, n, k, latency_us, stack of a file in that format
/// (predictor/measured/measurements.h). Throws InputError with file:line for malformed rows, rows
/// without duration or stack, rows in another format than bf16 and fp16, and unknown GPUs.
TensorData read_tensor_rows(const std::filesystem::path& path, const GpuLookup& lookup);

/// Which rows are kept from a fit, so that its error on them can be reported.
enum class TensorHoldout : std::uint8_t {
  none,
  shapes,    ///< a fifth of all (m, n, k), by hash
  matrices,  ///< a fifth of all (n, k), by hash: weight matrices never seen
};

/// The same for all GPUs and stacks.
bool held_out(const TensorShape& shape, TensorHoldout holdout);

/// Samples that `keep` accepts, in order.
std::vector<TensorSample> filtered(const std::vector<TensorSample>& samples,
                                   const std::function<bool(const TensorSample&)>& keep);

}  // namespace tessera
