#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/units/precision.h"
#include "predictor/kernel_predictor.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// Operators of the FP32 kernel measurements, by their names in the file.
enum class MeasuredOp : std::uint8_t {
  linear,
  bmm,
  add,
  mul,
  div,
  pow,
  add_scalar,
  mul_scalar,
  div_scalar,
  pow_scalar,
  relu,
  gelu,
  tanh,
  softmax,
  layer_norm,
  conv2d,
};
inline constexpr std::size_t kMeasuredOps = 16;
std::string_view name_of(MeasuredOp op);

/// How a call was timed. Only an isolated one holds the host's launch gap.
enum class CallTiming : std::uint8_t {
  isolated,  ///< events around one call on an idle GPU
  graph,     ///< one of many in a replayed CUDA graph
  queue,     ///< one of many that wait in the stream
};

/// One timed call of one operator on one GPU.
struct KernelMeasurement {
  std::uint16_t gpu = 0;  ///< position in MeasurementFile::gpus
  MeasuredOp op = MeasuredOp::linear;
  CallTiming timing = CallTiming::isolated;
  /// Before the call: `sustained` where the file states a timing in a graph or queue, which
  /// tools/collect repeats until the clocks settle.
  Load load = Load::isolated;
  Precision precision = Precision::fp32;
  bool train = false;                                ///< split == "train", fp32, isolated
  bool test = false;                                 ///< split == "test": nothing is fitted to it
  std::int64_t batch = 0, m = 0, n = 0, k = 0;       ///< matmuls; conv2d: n = out, k = in channels
  std::int64_t rows = 0, cols = 0;                   ///< the others; conv2d: of an input image
  std::int32_t window = 0, stride = 0, padding = 0;  ///< conv2d
  std::int32_t earlier = 0;  ///< conv2d: rows of the same GPU before it in the file
  double latency_us = 0;     ///< 0 where the file states none
  int tile_a = 0,
      tile_b = 0;           ///< the two sides in the kernel's name (sgemm_128x64); 0 = not stated
  std::int64_t blocks = 0;  ///< of the launched grid; 0 = not stated
  /// Products: the number format where `precision` is not all that it says (product_format.h);
  /// empty otherwise.
  std::string_view format;
  GemmLayout layout = GemmLayout::tn;  ///< linear
  bool accumulate = false;             ///< linear: adds to an FP32 output
  /// Sets of operands that calls go through in turn; 0: the caches are cold, as in a step. Column
  /// `warm`: 1 is one set; tensor_core.csv and its kind take five (ai-dynamo/aiconfigurator).
  int warm_sets = 0;
  std::string_view stack;  ///< library that ran it; empty where the file does not say
  std::string_view line;   ///< the row as it stands in the file
};

/// Convolutions of a GPU before the launch floor of its timing process had risen much.
inline constexpr std::int32_t kFreshCalls = 1000;

/// A file in the format of measurements/kernels/fp32.csv or fp32_conv.csv. Rows refer into `text`.
struct MeasurementFile {
  std::filesystem::path path;
  std::shared_ptr<const std::string> text;
  std::string_view header;
  std::vector<std::string> gpus;  ///< ids in order of appearance
  std::vector<KernelMeasurement> rows;
  /// Rows that could not be read, each with the reason; empty unless they are wanted.
  std::vector<std::pair<std::string_view, std::string>> bad_rows = {};
};

/// What becomes of rows that cannot be read.
enum class UnreadRows : std::uint8_t { refused, kept };

/// Reads by name the columns gpu, op, batch; m, n, k, rows, cols, or, in a file with a column
/// in_channels, in_channels, out_channels, kernel_size, input_size, stride, padding; split,
/// latency_us, kernel_name and grid_* where present. The rest is ignored. `timing` is isolated
/// where absent, `dtype` fp32. A file without `op` but with `dtype` has the format of
/// measurements/kernels/tensor_core.csv: columns gpu, dtype, m, n, k; rows are linear layers, timed
/// in a graph where nothing else is said. Throws InputError with file:line for what is malformed,
/// at most 20 problems.
MeasurementFile read_measurements(const std::filesystem::path& path,
                                  UnreadRows bad = UnreadRows::refused);

/// The kernel that was timed: shape, FLOPs and compulsory bytes.
Kernel kernel_of(const KernelMeasurement& row);

}  // namespace tessera
