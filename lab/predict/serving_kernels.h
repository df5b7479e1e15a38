#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw/gpu.h"
#include "lab/fit/tensor/measured_table.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// One kernel of a call, on a GPU whose peaks are those of a number format.
struct ServingKernel {
  Kernel kernel;
  std::string variant;  ///< a name of product_format.h, "fp8 attention", or empty
};

/// What one timed call of a server's operator launches.
struct ServingCall {
  std::string gpu;
  std::string name;      ///< for tables: operator and number format
  std::string stand_in;  ///< what it is predicted as
  std::string stack;     ///< software that ran it
  std::vector<ServingKernel> kernels;
};

/// The GPU with the peaks that `variant` asks for.
GpuSpec variant_of(const std::string& variant, const GpuSpec& gpu);

/// Chooses the attention kernel that `gpu` runs for the call's software.
void complete(ServingCall& call, const GpuSpec& gpu);

// Columns in the order in which the readers count them; gpu and latency_us come first. A reader
// returns nothing, with a problem noted, for a row that it cannot read.

/// Latent attention (DeepSeek-V3: kv rank 512, heads of 128 + 64 and 128), prefill: the attention
/// alone, or with its projections. `prefix` tokens lie in the cache.
extern const std::vector<std::string> kMlaColumns, kMlaOptional;
std::optional<ServingCall> read_mla_call(MeasuredTable& table);

/// The experts of one rank: permute, two grouped products with an activation between, weighted sum.
extern const std::vector<std::string> kExpertColumns, kExpertOptional;
std::optional<ServingCall> read_expert_call(MeasuredTable& table);

/// Causal 1-d convolution of Mamba-2, one filter for each channel.
extern const std::vector<std::string> kConvolution1dColumns;
std::optional<ServingCall> read_convolution_1d_call(MeasuredTable& table);

/// One product per group, equally large, in a layout of training.
extern const std::vector<std::string> kGroupedColumns, kGroupedOptional;
std::optional<ServingCall> read_grouped_call(MeasuredTable& table);

/// Activations to fp8, with a scale that is known, or the search for their maximum.
extern const std::vector<std::string> kQuantizeColumns;
std::optional<ServingCall> read_quantize_call(MeasuredTable& table);

}  // namespace tessera
