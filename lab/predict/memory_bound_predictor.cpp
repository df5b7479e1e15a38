#include "lab/predict/memory_bound_predictor.h"

#include "predictor/fp32/issue_limit.h"
#include "workloads/program/pointwise_flops.h"

namespace tessera {
namespace {

/// Standard deviation of log time over rows of A100 of 20 us and longer: .027 to .137 by operator.
constexpr double kSpread = 0.10;

KernelKind kind_of(MemoryBoundOp op) {
  if (op == MemoryBoundOp::embedding) return KernelKind::gather;
  const bool norm = op == MemoryBoundOp::rms_norm || op == MemoryBoundOp::layer_norm;
  return norm ? KernelKind::layer_norm : KernelKind::elementwise;
}

double flops_of(const MemoryBoundRow& row) {
  const double elements = static_cast<double>(row.rows) * static_cast<double>(row.width);
  return (row.op == MemoryBoundOp::gelu ? pointwise_flops::kGelu : 1) * elements;
}

Kernel kernel_of(const MemoryBoundRow& row) {
  Kernel kernel;
  kernel.kind = kind_of(row.op);
  kernel.precision = Precision::fp16;
  kernel.rows = row.rows;
  kernel.cols = row.width;
  kernel.flops = Flops(flops_of(row));
  kernel.bytes_written = Bytes(row.bytes / (row.op == MemoryBoundOp::add ? 3 : 2));
  kernel.bytes_read = Bytes(row.bytes) - kernel.bytes_written;
  return kernel;
}

}  // namespace

double server_instructions(MemoryBoundOp op) {
  switch (op) {
    case MemoryBoundOp::add:
    case MemoryBoundOp::gelu:
      return 0;
    case MemoryBoundOp::silu_mul:
      return 77;
    case MemoryBoundOp::rope:
      return 89;
    case MemoryBoundOp::rms_norm:
      return 108;
    case MemoryBoundOp::layer_norm:
      return 72;
    case MemoryBoundOp::embedding:
      return 254;
  }
  return 0;
}

MemoryBoundPredictor::MemoryBoundPredictor(const GpuSpec& gpu, const PredictorWeights& weights)
    : kernels_(gpu, weights), gpu_(gpu_traits(gpu)) {}

KernelPrediction MemoryBoundPredictor::predict(const MemoryBoundRow& row,
                                               double instructions) const {
  constexpr double kReadAndWritten = 4;  // [B] of an element
  KernelPrediction prediction = kernels_.predict(kernel_of(row));
  const double elements = static_cast<double>(row.bytes) / kReadAndWritten;
  prediction.duration =
      Seconds(with_instructions(prediction.duration.value(), instructions * elements, gpu_));
  prediction.spread.gpu = kSpread;
  return prediction;
}

}  // namespace tessera
