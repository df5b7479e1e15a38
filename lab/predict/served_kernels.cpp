#include "lab/predict/served_kernels.h"

#include <utility>

#include "lab/predict/attention_stand_in.h"
#include "predictor/gpu/gpu_support.h"

namespace tessera {

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

ServedTime ServedKernels::of_product(const ServingKernel& part) {
  const std::pair key(part.variant, part.slowdown);
  auto found = products_.find(key);
  if (found == products_.end()) {
    const GpuSpec gpu = variant(part.variant);
    require_products(gpu, part.kernel.precision);
    found = products_
                .emplace(key, TensorGemmPredictor(gpu, part.kernel.precision,
                                                  *request_.weights.tensor_gemm, {}, load_))
                .first;
    found->second.slow_down(part.slowdown);
  }
  found->second.keep_warm(warm_sets_);
  const KernelPrediction prediction = found->second.predict(part.kernel);
  return {prediction.duration + found->second.launch_seconds(), prediction.spread};
}

ServedTime ServedKernels::of_attention(const ServingKernel& part) {
  AttentionCall call = part.kernel.attention;
  call.implementation = nearest_implementation(stack_, gpu_);
  auto found = attention_.find(part.variant);
  if (found == attention_.end())
    found = attention_
                .emplace(part.variant,
                         AttentionPredictor(variant(part.variant), *request_.weights.attention,
                                            AttentionSetting::serving, stack_))
                .first;
  const AttentionParts parts = found->second.parts(call);
  const double written = part.caches_latents && call.causal
                             ? parts.parameters.cache_write * parts.shape.key_value_bytes /
                                   gpu_.memory_bandwidth.value()
                             : 0;
  return {Seconds(parts.factor * (parts.forward.total - written)),
          found->second.predict(call).spread};
}

ServedTime ServedKernels::timed(const ServingKernel& part) {
  const bool tessera = request_.form == PredictorForm::tessera;
  const KernelKind kind = part.kernel.kind;
  if (tessera && part.slowdown != 0 && request_.weights.tensor_gemm) return of_product(part);
  if (kind == KernelKind::attention && tessera && request_.weights.attention)
    return of_attention(part);
  Kernel kernel = part.kernel;
  if (kind == KernelKind::attention)
    kernel.attention.implementation = nearest_implementation(stack_, gpu_);
  const KernelPrediction prediction = plain(part.variant).predict(kernel);
  return {prediction.duration, prediction.spread};
}

ServedTime ServedKernels::timed(const std::vector<ServingKernel>& kernels) {
  Seconds total(0);
  SpreadSum spread;
  for (const ServingKernel& kernel : kernels) {
    const ServedTime own = timed(kernel);
    total += own.time;
    spread.add(own.time, own.spread);
  }
  return {total, spread.relative()};
}

}  // namespace tessera
