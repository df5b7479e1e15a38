#include "lab/predict/served_kernels.h"

#include <algorithm>
#include <utility>

#include "hw/units/input_error.h"
#include "lab/predict/attention_stand_in.h"
#include "predictor/attention/kernel_generation.h"
#include "predictor/attention/served_traffic.h"
#include "predictor/fp32/power_mean.h"
#include "predictor/gpu/gpu_support.h"

namespace tessera {
namespace {

/// Rows of a thread block in kernels that a program compiles ahead for 8 and 4 bits (CUTLASS's,
/// DeepGEMM's, FlashInfer's; recalled), all of which are multiplied.
constexpr std::int64_t kCompiledRows = 128;

/// Log slowdown of a tile that a program has not: slower than any other.
constexpr double kNeverChosen = 20;

/// Thread blocks along the rows that start as a cluster: Hopper's kernels have two (vLLM's
/// `scaled_mm_sm90_fp8_dispatch.cuh`, recalled). On GB200 one row more costs one block more, not
/// two (decision 104).
std::int64_t rows_of_cluster(const GpuSpec& gpu) {
  return kCompiledRows * (gpu.architecture == Architecture::hopper ? 2 : 1);
}

std::int64_t multiplied_rows(std::int64_t rows, const GpuSpec& gpu) {
  const std::int64_t together = rows_of_cluster(gpu);
  return (rows + together - 1) / together * together;
}

/// Columns of the one tile that a program takes untuned.
constexpr int kUntunedColumns = 256;

bool has_tile(KernelTiles tiles, const TensorTile& tile) {
  const bool compiled_rows = tile.m == kCompiledRows;
  if (tiles == KernelTiles::untuned) return compiled_rows && tile.n == kUntunedColumns;
  if (tiles < KernelTiles::compiled || compiled_rows) return true;
  return tiles == KernelTiles::compiled_few && 2 * tile.m == kCompiledRows;
}

/// Whether rows that fill no tile are multiplied, too.
bool fills_rows(KernelTiles tiles) {
  return tiles == KernelTiles::compiled || tiles == KernelTiles::untuned;
}

TensorWeights with_tiles(TensorWeights weights, KernelTiles tiles) {
  for (std::size_t i = 0; i < kTensorTiles.size(); ++i)
    if (!has_tile(tiles, kTensorTiles[i])) weights.shared.penalty[i] = kNeverChosen;
  return weights;
}

/// A data centre GPU of Blackwell as kernels in Triton's manner find it, which have none of its
/// instructions: an SM does what A100's does in a clock, as in attention (decision 65).
GpuSpec by_earlier_instructions(GpuSpec gpu) {
  const double share = share_of_earlier_instructions(false);
  gpu.tensor_clock = gpu.tensor_clock * share;  // so no part of its tensor cores is held back
  for (FlopsPerSecond* peak : {&gpu.bf16, &gpu.fp16, &gpu.fp8}) *peak = *peak * share;
  return gpu;
}

/// A format at the rate of fp8 products that the GPU has not, though it may have fp8.
void require_format(const std::string& name, const GpuSpec& gpu) {
  if (product_format(name) == nullptr || gpu.fp8.value() > 0) return;
  throw InputError(
      {.where = "GPU " + gpu.id,
       .what = "has no tensor cores for matrix products in " + name + ", or states no dense peak",
       .hint = "name another format or GPU"});
}

}  // namespace

ServedKernels::ServedKernels(const ScoreRequest& request, const GpuSpec& gpu, std::string stack,
                             Load load)
    : request_(request), gpu_(gpu), stack_(std::move(stack)), load_(load) {}

GpuSpec ServedKernels::variant(const std::string& name) const {
  if (name == "fp8 attention") return gpu_with_fp8_attention(gpu_);
  const ProductFormat* format = product_format(name);
  return format == nullptr ? gpu_ : gpu_in_format(*format, gpu_);
}

const KernelPredictor& ServedKernels::plain(const std::string& name) {
  auto& predictor = plain_[name];
  if (!predictor) predictor = make_predictor(request_.form, variant(name), request_.weights, load_);
  return *predictor;
}

/// Kernels for many products at once split no contraction, nor do those for number formats in
/// CUTLASS's manner for Hopper and later, as products of few tiles show on both (decision 72). On
/// Ada, whose kernels are Stream-K's, such products lose nothing.
KernelTiles ServedKernels::tiles_of(const ServingKernel& part) const {
  if (part.kernel.kind == KernelKind::grouped_gemm) return KernelTiles::whole;
  if (product_format(part.variant) == nullptr || !gpu_.copies_in_bulk()) return KernelTiles::any;
  if (part.of_library) return KernelTiles::whole;
  if (part.untuned) return KernelTiles::untuned;
  return part.kernel.m > kCompiledRows ? KernelTiles::compiled : KernelTiles::compiled_few;
}

TensorGemmPredictor& ServedKernels::products(const ServingKernel& part) {
  const KernelTiles tiles = tiles_of(part);
  const std::tuple key(part.variant, part.by_triton, part.loss.tiles, part.loss.power, tiles);
  auto found = products_.find(key);
  if (found == products_.end()) {
    GpuSpec gpu = variant(part.variant);
    if (part.by_triton && has_tensor_memory(gpu)) gpu = by_earlier_instructions(gpu);
    require_format(part.variant, gpu);
    require_products(gpu, part.kernel.precision);
    found = products_
                .emplace(key, TensorGemmPredictor(gpu, part.kernel.precision,
                                                  with_tiles(*request_.weights.tensor_gemm, tiles),
                                                  {}, load_))
                .first;
    found->second.slow_down(part.loss);
    if (tiles != KernelTiles::any) found->second.keep_whole();
  }
  found->second.keep_warm(warm_sets_);
  return found->second;
}

ServedTime ServedKernels::of_product(const ServingKernel& part) {
  const TensorGemmPredictor& predictor = products(part);
  Kernel kernel = part.kernel;
  if (fills_rows(tiles_of(part))) kernel.m = multiplied_rows(kernel.m, gpu_);
  const KernelPrediction prediction = predictor.predict(kernel);
  return {prediction.duration + predictor.launch_seconds(), prediction.spread};
}

/// Keys and values, read in 16 bit and written in 8.
Seconds ServedKernels::quantization(const AttentionCall& call) {
  const std::int64_t rows = 2 * call.batch * call.seq_kv * call.kv_heads;
  return plain({}).predict(pointwise(rows, call.head_dim, call.head_dim / 2).kernel).duration;
}

AttentionPredictor& ServedKernels::attention(const std::string& name) {
  const auto found = attention_.find(name);
  if (found != attention_.end()) return found->second;
  const AttentionWeights& in_16_bits = *request_.weights.attention;
  const AttentionWeights weights =
      name == "fp8 attention" ? fp8_attention_weights(in_16_bits) : in_16_bits;
  return attention_
      .emplace(name, AttentionPredictor(variant(name), weights, AttentionSetting::serving, stack_))
      .first->second;
}

/// Latents are cached by a kernel of their own, and of the queries the rotated part alone moves,
/// but all of them into 8 bits.
ServedTime ServedKernels::of_attention(const ServingKernel& part) {
  AttentionCall call = part.kernel.attention;
  call.implementation = nearest_implementation(stack_, gpu_);
  const bool eight_bits = part.variant.empty() && part.eight_bit_cache &&
                          attends_in_cache_format(call.implementation, gpu_);
  AttentionPredictor& predictor = attention(eight_bits ? "fp8 attention" : part.variant);
  const AttentionParts parts = predictor.parts(call);
  double seconds = parts.forward.total;
  if (part.caches_latents) {
    const double cached = parts.parameters.cache_write * parts.shape.key_value_bytes;
    const double written = call.causal ? cached / parts.gpu.bandwidth : 0;
    const double moved = eight_bits ? 1 : part.rotated;
    seconds -= written + (1 - moved) * (parts.forward.serving - written);
  }
  const Seconds quantized = eight_bits ? quantization(call) : Seconds(0);
  return {Seconds(parts.factor * seconds) + quantized, predictor.predict(call).spread};
}

ServedTime ServedKernels::timed(const ServingKernel& part) {
  const bool tessera = request_.form == PredictorForm::tessera;
  const KernelKind kind = part.kernel.kind;
  if (tessera && part.loss.tiles != 0 && request_.weights.tensor_gemm) return of_product(part);
  if (kind == KernelKind::attention && tessera && request_.weights.attention)
    return of_attention(part);
  Kernel kernel = part.kernel;
  if (kind == KernelKind::attention)
    kernel.attention.implementation = nearest_implementation(stack_, gpu_);
  const KernelPrediction prediction = plain(part.variant).predict(kernel);
  return {prediction.duration, prediction.spread};
}

/// Instructions at the rate of all SMs; other forms know none.
Seconds ServedKernels::of_clocks(double clocks) const {
  const double rate = gpu_.sm_count * gpu_.boost_clock.value();
  const bool known = request_.form == PredictorForm::tessera && rate > 0;
  return Seconds(known ? clocks / rate : 0);
}

/// A kernel that takes `moving` alone, beside what its instructions take: a p-norm of 4, as of the
/// memory-bound kernels that SMs limit. What the L2 holds of it comes from there.
Seconds ServedKernels::paced(const ServingKernel& part, Seconds moving) {
  constexpr double kTogether = 4;
  if (request_.form != PredictorForm::tessera) return moving;
  const double rate = served_bandwidth(gpu_, {.operand_bytes = part.resident_bytes});
  if (part.resident_bytes > 0 && rate > gpu_.memory_bandwidth.value()) {
    const Seconds start = plain({}).predict(pointwise(1, 1, 1).kernel).duration;
    moving =
        std::min(moving, start + Seconds(static_cast<double>(part.kernel.bytes().value()) / rate));
  }
  const Seconds busy = of_clocks(part.busy_clocks);
  if (busy.value() <= 0 || moving.value() <= 0) return moving + busy;
  return Seconds(smooth_max(moving.value(), busy.value(), kTogether));
}

ServedTime ServedKernels::timed(const std::vector<ServingKernel>& kernels) {
  Seconds total(0);
  SpreadSum spread;
  for (const ServingKernel& kernel : kernels) {
    ServedTime own = timed(kernel);
    own.time = paced(kernel, own.time) + of_clocks(kernel.sm_clocks);
    total += own.time;
    spread.add(own.time, own.spread);
  }
  return {total, spread.relative()};
}

}  // namespace tessera
