#include "predictor/stand_ins.h"

#include <cmath>
#include <cstdint>

#include "predictor/fp32/gemm_model.h"

namespace tessera {
namespace {

double compute_seconds(const GemmShape& shape, const GpuTraits& gpu, const GemmWeights& weights,
                       double slowdown) {
  return std::exp(slowdown) * gemm_compute_seconds(shape, gpu, weights.shared, weights.menu(gpu));
}

}  // namespace

Kernel implicit_product(const Kernel& convolution) {
  Kernel product = convolution;
  product.kind = KernelKind::batched_gemm;
  product.layout = GemmLayout::nn;
  return product;
}

Kernel equal_groups(const Kernel& grouped) {
  Kernel batch = grouped;
  const auto groups = static_cast<std::int64_t>(grouped.group_sizes.size());
  batch.kind = groups > 1 ? KernelKind::batched_gemm : KernelKind::gemm;
  batch.group_sizes.clear();
  if (groups <= 1) return batch;
  batch.batch = groups;
  std::int64_t& size = grouped.layout == GemmLayout::nt ? batch.k : batch.m;
  size = (size + groups - 1) / groups;
  return batch;
}

double transposed_shift(const GpuTraits& traits, const GpuEffect& effect, const GemmWeights& gemm,
                        const GemmWeights& batched) {
  constexpr double kSize = 4096;
  const GemmShape unstrided{.m = kSize, .n = kSize, .k = kSize};
  GemmShape strided = unstrided;
  strided.strided = true;
  const double tn = compute_seconds(strided, traits, gemm, effect.gemm_slowdown);
  const double nn = compute_seconds(unstrided, traits, batched, effect.batched_slowdown);
  const double tn_without_rows = compute_seconds(unstrided, traits, gemm, effect.gemm_slowdown);
  return 0.5 * std::log(nn / tn) + std::log(tn / tn_without_rows);
}

}  // namespace tessera
