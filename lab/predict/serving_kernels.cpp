#include "lab/predict/serving_kernels.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lab/predict/attention_stand_in.h"
#include "lab/predict/source_spreads.h"
#include "predictor/measured/kernel_csv.h"
#include "predictor/product_format.h"

namespace tessera {
namespace {

using Extent = std::optional<std::int64_t>;
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

// DeepSeek-V3 (arXiv:2412.19437), table of its configuration.
constexpr std::int64_t kHidden = 7168, kQueryRank = 1536, kKvRank = 512, kNope = 128, kRope = 64,
                       kValue = 128;

void add_projections(const ProductFormat* format, std::int64_t tokens, std::int64_t cached,
                     std::int64_t heads, std::string_view stack,
                     std::vector<ServingKernel>& kernels) {
  add_product(format, tokens, kQueryRank + kKvRank + kRope, kHidden, stack, kernels);
  kernels.push_back(pointwise(tokens, kQueryRank + kKvRank, kQueryRank + kKvRank));  // norms
  add_product(format, tokens, heads * (kNope + kRope), kQueryRank, stack, kernels);
  add_product(format, tokens + cached, heads * (kNope + kValue), kKvRank, stack, kernels);
  kernels.push_back(pointwise(tokens, heads * (kNope + kRope), heads * (kNope + kRope)));  // rope
  kernels.push_back(pointwise(tokens + cached, heads * kNope, heads * (kNope + kRope)));   // keys
  add_product(format, tokens, kHidden, heads * kValue, stack, kernels);
}

/// Whether the software multiplies queries and results by the up-projections of keys and values, so
/// that every head attends to the cached latent rows themselves: 3.4 times the arithmetic of the
/// heads that they stand for, one key head for all. Of vLLM's, FlashMLA and FlashAttention's form
/// of it, as modules; as attention alone its prefill is that of other models. SGLang's all.
bool absorbs(std::string_view stack, bool module) {
  const auto says = [&](std::string_view word) { return stack.find(word) != stack.npos; };
  if (module) return says("FLASHMLA") || says("FLASH_ATTN_MLA");
  return says("sglang") && !says("trtllm");
}

/// vLLM gives every token a scale of its own in 8 bits: a thread block of 256 threads a row, 8
/// elements each at a time, finds the largest value and comes back to the row where it is cached.
bool scales_tokens(const ProductFormat& format, std::string_view stack) {
  return format.scaled_by_largest && format.bits == 8 && stack.starts_with("vllm");
}
constexpr double kElementsOfAPass = 256 * 8;

/// Clocks of an SM that such a block takes for each pass over its row, and once more to start and
/// to join its threads' values: what GB200, H100 and L40S choose of 600, 700, ... 1400; any two of
/// them choose 1000 or 1100 (decision 92).
constexpr double kClocksOfAPass = 1000;

/// Products with one scale a tensor are cuBLASLt's in TensorRT-LLM, which chooses among many tiles
/// (torch's `_scaled_mm`, recalled).
bool is_cublas(const ProductFormat& format, std::string_view stack) {
  return format.scaled_by_largest && format.bits == 8 && stack.starts_with("trtllm");
}

/// TensorRT-LLM multiplies nvfp4 by one tile of 128 x 256 where nothing tuned the call
/// (`getDefaultGemmConfig` in thop/fp4Gemm.cpp, recalled): on GB200 one row takes as long as 256,
/// one column as 16,384, and 51,200 elements of the contraction 100 us (decision 120).
bool is_untuned(const ProductFormat& format, std::string_view stack) {
  return format.name == "nvfp4" && stack.starts_with("trtllm");
}

/// Checkpoints in nvfp4 state the scale of activations (`input_scale`). SGLang's calls are as short
/// as its cast alone makes them, those of vLLM and TensorRT-LLM as long as behind a search
/// (decision 120).
bool takes_stated_scale(const ProductFormat& format, std::string_view stack) {
  return format.name == "nvfp4" && stack.starts_with("sglang");
}

/// TensorRT-LLM's search takes 8.4, 7.1 and 6.1 us of GB200, H100 and L40S however small the matrix
/// (quantize_fp8.csv), where one kernel takes 2: as three that are too small to count.
constexpr int kSmallKernels = 3;

bool searches_in_small_kernels(const ProductFormat& format, std::string_view stack) {
  return is_cublas(format, stack);
}

void add_small_kernels(std::vector<ServingKernel>& kernels) {
  for (int i = 0; i < kSmallKernels; ++i) kernels.push_back(pointwise(1, 1, 1));
}

void add_quantization(const ProductFormat& format, std::int64_t m, std::int64_t k,
                      std::string_view stack, std::vector<ServingKernel>& kernels) {
  if (scales_tokens(format, stack)) {
    const double passes = std::ceil(static_cast<double>(k) / kElementsOfAPass);
    kernels.push_back({quantization_kernel(format, m, k), {}});
    kernels.back().busy_clocks = kClocksOfAPass * static_cast<double>(m) * (1 + passes);
    return;
  }
  if (takes_stated_scale(format, stack)) {
    kernels.push_back({quantization_kernel(format, m, k), {}});
    return;
  }
  if (searches_in_small_kernels(format, stack)) add_small_kernels(kernels);
  for (const Kernel& kernel : quantization_kernels(format, m, k)) kernels.push_back({kernel, {}});
}

/// A causal convolution has a thread block for each channel of each sequence, of two warps for up
/// to 512 positions and four for more; a warp takes 8 positions a thread at a time. Its clocks are
/// what GB200, H100 and L40S choose of steps of 10, and any two of them (decision 92).
constexpr double kClocksToStart = 40, kClocksOfAChunk = 80;

double convolution_clocks(double blocks, double positions) {
  const double warps = positions > 512 ? 4 : 2;
  const double chunks = std::ceil(positions / (warps * 32 * 8));
  return blocks * warps * (kClocksToStart + kClocksOfAChunk * chunks);
}

/// Scores have heads of 192, values of 128: as heads of their mean, which has as much arithmetic.
/// Absorbed: of 576 and 512.
Kernel latent_attention(std::int64_t batch, std::int64_t heads, std::int64_t seq,
                        std::int64_t prefix, bool absorbed) {
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = Precision::bf16;
  AttentionCall& call = kernel.attention;
  call.batch = batch;
  call.heads = call.kv_heads = heads;
  call.seq_q = seq;
  call.seq_kv = seq + prefix;
  call.head_dim = (kNope + kRope + kValue) / 2;
  if (absorbed) {
    call.kv_heads = 1;
    call.head_dim = (kKvRank + kRope + kKvRank) / 2;
  }
  kernel.flops = Flops(attention_flops(call));
  kernel.bytes_read = Bytes(static_cast<std::int64_t>(attention_bytes(call)));
  return kernel;
}

}  // namespace

ServingKernel pointwise(std::int64_t rows, std::int64_t read, std::int64_t written) {
  Kernel kernel;
  kernel.kind = KernelKind::elementwise;
  kernel.precision = Precision::bf16;
  kernel.rows = rows;
  kernel.cols = std::max(read, written);
  kernel.flops = Flops(static_cast<double>(rows) * static_cast<double>(kernel.cols));
  kernel.bytes_read = Bytes(2 * rows * read);
  kernel.bytes_written = Bytes(2 * rows * written);
  return {kernel, {}};
}

void add_product(const ProductFormat* format, std::int64_t m, std::int64_t n, std::int64_t k,
                 std::string_view stack, std::vector<ServingKernel>& kernels) {
  if (format != nullptr) {
    add_quantization(*format, m, k, stack, kernels);
    kernels.push_back(
        {product_in_format(*format, m, n, k), std::string(format->name), format->loss()});
    kernels.back().of_library = is_cublas(*format, stack);
    kernels.back().untuned = is_untuned(*format, stack);
    return;
  }
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = Precision::bf16;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops =
      Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  kernel.bytes_read = Bytes(2 * (m * k + n * k));
  kernel.bytes_written = Bytes(2 * m * n);
  kernels.push_back({kernel, {}});
}

bool read_format(MeasuredTable& table, std::size_t column, const ProductFormat*& format) {
  const std::string_view name = table.text(column);
  format = product_format(name);
  if (format != nullptr || name == "bf16" || name == "fp16" || name.empty()) return true;
  table.problem("dtype = '" + std::string(name) + "' is not known",
                "bf16, fp16, fp8, fp8_block, nvfp4, int8 or w4a8_mxfp4_mxfp8");
  return false;
}

bool fits(MeasuredTable& table, double elements) {
  if (elements <= static_cast<double>(kMostElements)) return true;
  table.problem("a tensor holds more than 2^50 elements", "no GPU holds it");
  return false;
}

void add_grouped(const ProductFormat* format, const std::vector<std::int64_t>& rows, std::int64_t n,
                 std::int64_t k, std::vector<ServingKernel>& kernels) {
  std::int64_t m = 0;
  for (const std::int64_t size : rows) m += size;
  const auto groups = static_cast<double>(rows.size());
  Kernel kernel;
  if (format != nullptr) {
    kernel = product_in_format(*format, m, n, k);
    const double weights = format->weight_bytes * static_cast<double>(n) * static_cast<double>(k);
    kernel.bytes_read += Bytes(static_cast<std::int64_t>((groups - 1) * weights));
  } else {
    std::vector<ServingKernel> one;
    add_product(nullptr, m, n, k, {}, one);
    kernel = one.front().kernel;
    kernel.bytes_read = Bytes(2 * (m * k + static_cast<std::int64_t>(groups) * n * k));
  }
  kernel.kind = KernelKind::grouped_gemm;
  kernel.group_sizes = rows;
  if (format == nullptr) return kernels.push_back({kernel, {}});
  kernels.push_back({kernel, std::string(format->name), format->grouped_loss()});
}

std::string with_format(const char* op, std::string_view format) {
  return op + (format.empty() ? std::string() : " " + std::string(format));
}

const std::vector<std::string> kMlaColumns{"gpu",   "latency_us", "part", "dtype",
                                           "batch", "heads",      "seq_q"};
const std::vector<std::string> kMlaOptional{"prefix", "model", "stack", "kv_cache_dtype"};
const std::vector<std::string> kConvolution1dColumns{
    "gpu", "latency_us", "num_tokens", "d_state", "ssm_heads", "head_dim", "groups"};
const std::vector<std::string> kConvolution1dOptional{"batch"};
const std::vector<std::string> kGroupedColumns{"gpu", "latency_us", "groups", "m", "n", "k"};
const std::vector<std::string> kGroupedOptional{"layout", "accumulate", "dtype", "stack"};
const std::vector<std::string> kQuantizeColumns{"gpu", "latency_us", "op", "m", "k"};
const std::vector<std::string> kQuantizeOptional{"stack"};

std::optional<ServingCall> read_mla_call(MeasuredTable& table) {
  std::int64_t sizes[3];
  const ProductFormat* format = nullptr;
  if (!read_format(table, 3, format) || !read_sizes(table, {4, 5, 6}, sizes)) return std::nullopt;
  const auto [batch, heads, seq] = std::tuple(sizes[0], sizes[1], sizes[2]);
  const bool no_prefix = table.text(7).empty() || table.text(7) == "0";
  const Extent prefix = no_prefix ? Extent(0) : table.extent(7);
  const std::string_view part = table.text(2);
  if (part != "attention" && part != "module") {
    table.problem("part = '" + std::string(part) + "' is not known", "attention or module");
    return std::nullopt;
  }
  if (!prefix || !fits(table, static_cast<double>(batch) * static_cast<double>(seq + *prefix) *
                                  static_cast<double>(heads) * kHidden))
    return std::nullopt;
  ServingCall call{
      .gpu = {},
      .name = with_format(part == "module" ? "mla module" : "mla attention", table.text(3)),
      .stand_in = "attention with heads of 160, of the implementation that is nearest",
      .stack = std::string(table.text(9)),
      .kernels = {},
      .source_spread = source_spread::kLatents};
  if (part == "module")
    add_projections(format, batch * seq, batch * *prefix, heads, call.stack, call.kernels);
  const bool eight_bit_cache = table.text(10) == "fp8";
  const bool eight_bits = eight_bit_cache && part == "attention" && format != nullptr;
  const bool absorbed = absorbs(call.stack, part == "module");
  if (absorbed) call.stand_in = "attention with one key head of 576 and 512, " + call.stand_in;
  call.kernels.push_back(pointwise(batch * seq, kKvRank + kRope, kKvRank + kRope));  // to the cache
  call.kernels.push_back({.kernel = latent_attention(batch, heads, seq, *prefix, absorbed),
                          .variant = eight_bits ? "fp8 attention" : std::string(),
                          .caches_latents = true,
                          .rotated = absorbed ? 1 : static_cast<double>(kRope) / (kNope + kRope),
                          .eight_bit_cache = eight_bit_cache});
  return call;
}

std::optional<ServingCall> read_convolution_1d_call(MeasuredTable& table) {
  std::int64_t sizes[5];
  if (!read_sizes(table, {2, 3, 4, 5, 6}, sizes)) return std::nullopt;
  const std::int64_t tokens = sizes[0], channels = sizes[2] * sizes[3] + 2 * sizes[4] * sizes[1];
  const Extent batch = table.text(7).empty() ? Extent(1) : table.extent(7);
  if (!batch || !fits(table, static_cast<double>(tokens) * static_cast<double>(channels)))
    return std::nullopt;
  ServingKernel kernel = pointwise(tokens, channels, channels);
  const auto sequences = static_cast<double>(std::min(*batch, tokens));
  kernel.busy_clocks = convolution_clocks(sequences * static_cast<double>(channels),
                                          static_cast<double>(tokens) / sequences);
  kernel.resident_bytes = static_cast<double>(2 * tokens * channels);  // written in place
  return ServingCall{.gpu = {},
                     .name = "causal conv1d",
                     .stand_in = "a kernel of as many bytes, a thread block for each channel",
                     .stack = {},
                     .kernels = {kernel}};
}

std::optional<ServingCall> read_grouped_call(MeasuredTable& table) {
  std::int64_t sizes[4];
  const ProductFormat* format = nullptr;
  if (!read_sizes(table, {2, 3, 4, 5}, sizes) || !read_format(table, 8, format))
    return std::nullopt;
  const std::int64_t groups = sizes[0], m = sizes[1], n = sizes[2], k = sizes[3];
  if (groups > 65536 ||
      !fits(table, static_cast<double>(groups) * static_cast<double>(m * k + n * k) +
                       static_cast<double>(groups) * static_cast<double>(m * n)))
    return std::nullopt;
  ServingCall call{.gpu = {},
                   .name = "grouped product " + std::string(table.text(6)),
                   .stand_in = {},
                   .stack = std::string(table.text(9)),
                   .kernels = {}};
  const bool gradient = table.text(6) == "NT" || table.text(6) == "nt";
  const std::vector<std::int64_t> parts(static_cast<std::size_t>(groups), gradient ? k : m);
  add_grouped(format, parts, n, k, call.kernels);
  Kernel& kernel = call.kernels.back().kernel;
  if (gradient) {  // every group has its own output, and sums over its rows
    kernel.layout = GemmLayout::nt;
    kernel.m = m;
    kernel.k = k * groups;
    kernel.flops = Flops(2.0 * static_cast<double>(groups) * static_cast<double>(m) *
                         static_cast<double>(n) * static_cast<double>(k));
    kernel.bytes_read = Bytes(2 * groups * (m * k + n * k));
    kernel.bytes_written = Bytes(2 * groups * m * n);
  } else if (table.text(6) == "NN" || table.text(6) == "nn") {
    kernel.layout = GemmLayout::nn;
  }
  if (table.text(7) == "1") {  // adds to FP32 gradients
    kernel.bytes_read += Bytes(4 * groups * m * n);
    kernel.bytes_written = Bytes(4 * groups * m * n);
  }
  return call;
}

std::optional<ServingCall> read_quantize_call(MeasuredTable& table) {
  std::int64_t sizes[2];
  if (!read_sizes(table, {3, 4}, sizes)) return std::nullopt;
  const std::string_view op = table.text(2);
  if (op != "scale_matrix" && op != "compute_scale") {
    table.problem("op = '" + std::string(op) + "' is not known", "scale_matrix or compute_scale");
    return std::nullopt;
  }
  ServingCall call{.gpu = {},
                   .name = std::string(op),
                   .stand_in = op == "scale_matrix" ? "a pointwise kernel of as many bytes"
                                                    : "one more read of the matrix",
                   .stack = {},
                   .kernels = {}};
  const ProductFormat& format = *product_format("fp8");
  if (op == "compute_scale" && searches_in_small_kernels(format, table.text(5)))
    add_small_kernels(call.kernels);
  call.kernels.push_back({op == "scale_matrix" ? quantization_kernel(format, sizes[0], sizes[1])
                                               : search_kernel(sizes[0], sizes[1]),
                          {}});
  return call;
}

}  // namespace tessera
