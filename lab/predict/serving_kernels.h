#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/gpu.h"
#include "lab/fit/tensor/measured_table.h"
#include "predictor/product_format.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// One kernel of a call, on a GPU whose peaks are those of a number format.
struct ServingKernel {
  Kernel kernel;
  std::string variant;           ///< a name of product_format.h, "fp8 attention", or empty
  ProductLoss loss{};            ///< of a product, against a measured library's 16-bit one
  bool caches_latents = false;   ///< attention whose keys and values do not go into the cache
  double rotated = 1;            ///< share of the queries' elements that a position turns
  bool eight_bit_cache = false;  ///< attention: keys and values cached in fp8
  double sm_clocks = 0;          ///< of one SM, shared by all, after what the kernel moves
  double busy_clocks = 0;        ///< the same, while it moves: the slower of both sets the pace
  bool of_library = false;       ///< a product in a number format by a library of many tiles
  bool untuned = false;          ///< the same by the one tile that a program takes untuned
  bool by_triton = false;        ///< a product by a kernel in Triton's manner
  double resident_bytes = 0;  ///< that calls come back to, in the L2 where it holds them; 0: cold
};

/// What one timed call of a server's operator launches.
struct ServingCall {
  std::string gpu;
  std::string name;      ///< for tables: operator and number format
  std::string stand_in;  ///< what it is predicted as
  std::string stack;     ///< software that ran it
  std::vector<ServingKernel> kernels;
  double source_spread = 0;  ///< of all calls of its software (source_spreads.h)
  int warm_sets = 0;         ///< of operands of products that calls go through in turn; 0: cold
};

/// Pointwise over 16-bit tensors: `read` and `written` elements, in rows.
ServingKernel pointwise(std::int64_t rows, std::int64_t read, std::int64_t written);

/// A 16-bit product, or one in a format with what makes its operands in `stack`.
void add_product(const ProductFormat* format, std::int64_t m, std::int64_t n, std::int64_t k,
                 std::string_view stack, std::vector<ServingKernel>& kernels);

/// One product over groups of `rows` rows each; operands are at hand.
void add_grouped(const ProductFormat* format, const std::vector<std::int64_t>& rows, std::int64_t n,
                 std::int64_t k, std::vector<ServingKernel>& kernels);

/// The number format of products; false, with a problem noted, for one that nobody knows.
bool read_format(MeasuredTable& table, std::size_t column, const ProductFormat*& format);

/// Sizes at once, so that every one is checked.
template <std::size_t N>
bool read_sizes(MeasuredTable& table, const std::size_t (&columns)[N], std::int64_t (&sizes)[N]) {
  double elements = 1;
  for (std::size_t i = 0; i < N; ++i) {
    const std::optional<std::int64_t> size = table.extent(columns[i]);
    if (!size) return false;
    sizes[i] = *size;
    elements = std::max(elements, static_cast<double>(*size));
  }
  if (elements <= static_cast<double>(std::int64_t{1} << 24)) return true;
  table.problem("a size is beyond 2^24", "no GPU holds such a tensor");
  return false;
}

/// False, with a problem noted, for tensors that no GPU holds.
bool fits(MeasuredTable& table, double elements);

/// "experts fp8"
std::string with_format(const char* op, std::string_view format);

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
extern const std::vector<std::string> kConvolution1dColumns, kConvolution1dOptional;
std::optional<ServingCall> read_convolution_1d_call(MeasuredTable& table);

/// One product per group, equally large, in a layout of training.
extern const std::vector<std::string> kGroupedColumns, kGroupedOptional;
std::optional<ServingCall> read_grouped_call(MeasuredTable& table);

/// Activations to fp8, with a scale that is known, or the search for their maximum.
extern const std::vector<std::string> kQuantizeColumns, kQuantizeOptional;
std::optional<ServingCall> read_quantize_call(MeasuredTable& table);

}  // namespace tessera
