#include "predictor/tensor/tensor_core_predictor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/judged_spreads.h"
#include "predictor/product_format.h"
#include "predictor/stand_ins.h"
#include "predictor/tensor/operand_alignment.h"

namespace tessera {
namespace {

/// Its fp8 products are fp4 products of half as many bytes; where those are more than twice as fast
/// as fp8 ones (Blackwell Ultra), its cores do more per clock, which a faster clock stands for.
GpuSpec gpu_of_fp4(const GpuSpec& gpu) {
  GpuSpec packed = gpu_in_format(*product_format("nvfp4"), gpu);
  if (gpu.fp8.value() > 0) packed.tensor_clock *= packed.fp8 / gpu.fp8;
  return packed;
}

[[noreturn]] void fail_untrained(const std::string& what, const std::string& model) {
  throw InputError({.where = "weights",
                    .what = "hold no " + what,
                    .hint = "use the shipped weights, or run tessera train --model " + model});
}

}  // namespace

TensorCorePredictor::TensorCorePredictor(const GpuSpec& gpu, const PredictorWeights& weights,
                                         Load load)
    : gpu_(gpu),
      trained_on_products_(weights.tensor_gemm.has_value()),
      trained_on_attention_(weights.attention.has_value()) {
  for (std::size_t i = 0; i < products_.size() && trained_on_products_; ++i) {
    const Precision precision = kAllPrecisions[i];
    if (precision == Precision::fp32 || !supports_products(gpu, precision)) continue;
    const bool packed = precision == Precision::fp4;
    products_[i].emplace(packed ? gpu_of_fp4(gpu) : gpu, packed ? Precision::fp8 : precision,
                         *weights.tensor_gemm, std::string_view(), load);
  }
  const bool peak = supports_products(gpu, Precision::bf16);
  if (trained_on_attention_ && peak && fastest_implementation(gpu))
    attention_.emplace(gpu, *weights.attention);
  const auto own = std::ranges::find(weights.calibrated, gpu.id, &GpuEffect::gpu);
  if (own == weights.calibrated.end() || own->tensor.rows == 0) return;
  for (std::optional<TensorGemmPredictor>& products : products_)
    if (products) products->calibrate(own->tensor);
  if (attention_ && own->tensor.attention != 0)
    attention_->calibrate(own->tensor.attention, own->tensor.source);
}

Kernel TensorCorePredictor::product_of(const Kernel& kernel) {
  if (kernel.kind == KernelKind::convolution) return implicit_product(kernel);
  if (kernel.precision != Precision::fp4) return kernel;
  Kernel packed = kernel;
  packed.precision = Precision::fp8;
  packed.k = std::max<std::int64_t>(1, kernel.k / 2);
  packed.flops = kernel.flops * 0.5;
  if (kernel.layout != GemmLayout::nt) return packed;
  for (std::int64_t& size : packed.group_sizes) size /= 2;  // of the contraction
  return packed;
}

bool TensorCorePredictor::covers(const Kernel& kernel) {
  return kernel.kind == KernelKind::attention ||
         (is_product(kernel.kind) && kernel.precision != Precision::fp32 &&
          !leaves_tensor_cores(kernel));
}

const TensorGemmPredictor& TensorCorePredictor::products(Precision precision) const {
  require_products(gpu_, precision);
  if (!trained_on_products_) fail_untrained("products on tensor cores", "tensor-gemm");
  return products_[static_cast<std::size_t>(precision)].value();
}

const AttentionPredictor& TensorCorePredictor::attention(const Kernel& kernel) const {
  require(gpu_, kernel.attention.implementation);
  require_products(gpu_, Precision::bf16);  // attention runs at that peak
  if (element_bytes(kernel.precision) != 2)
    throw InputError({.where = "attention in " + std::string(name_of(kernel.precision)),
                      .what = "has no fused kernel that was measured",
                      .hint = "choose bf16 or fp16, or model attention unfused"});
  if (!trained_on_attention_) fail_untrained("fused attention", "attention");
  return attention_.value();
}

KernelPrediction TensorCorePredictor::predict(const Kernel& kernel) const {
  if (!covers(kernel))
    throw std::invalid_argument("TensorCorePredictor covers tensor-core products and attention");
  if (kernel.kind == KernelKind::attention) return attention(kernel).predict(kernel.attention);
  const TensorGemmPredictor& model = products(kernel.precision);
  KernelPrediction prediction = model.predict(product_of(kernel));
  const double busy = prediction.duration.value();
  prediction.duration += model.launch_seconds();
  prediction.utilization *= busy / prediction.duration.value();
  if (kernel.kind == KernelKind::convolution)
    prediction.spread.gpu = std::hypot(prediction.spread.gpu, judged::kConvolution,
                                       kernel.batch > 1 ? judged::kConvolutionGroups : 0);
  return prediction;
}

Seconds TensorCorePredictor::launch_seconds(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::attention) return AttentionPredictor::training_launch();
  return products(kernel.precision).launch_seconds();
}

std::vector<std::string> TensorCorePredictor::notes(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::attention) return attention(kernel).notes(kernel.attention);
  const TensorGemmPredictor& model = products(kernel.precision);
  if (kernel.precision == Precision::fp4)
    return {"fp4 products on " + gpu_.id +
            ": never measured; as fp8 products of half as many bytes, at half of the fp4 peak"};
  if (kernel.kind != KernelKind::convolution) return model.notes(kernel);
  const bool groups = kernel.batch > 1;
  return {std::string(name_of(kernel.precision)) + " convolutions " + (groups ? "in groups " : "") +
          "on " + gpu_.id + ": never measured; as " +
          (groups ? "a batch of implicit products" : "their implicit product")};
}

std::string TensorCorePredictor::reason(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::attention) return attention(kernel).provenance(kernel.attention);
  const std::string products_of_model = products(kernel.precision).reason(product_of(kernel));
  if (kernel.precision != Precision::fp4) return products_of_model;
  return products_of_model + ", which stands for half of that of fp4";
}

}  // namespace tessera
