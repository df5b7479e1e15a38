#include "lab/fit/studies/half_memory_comparison.h"

#include "hw/units/formatted.h"
#include "lab/fit/attention/attention_errors.h"
#include "lab/fit/tensor/half_memory_predictor.h"
#include "predictor/tessera_predictor.h"

namespace tessera {
namespace {

/// Two tensors in, one out.
Kernel residual_add(std::int64_t rows, std::int64_t width) {
  const std::int64_t tensor = 2 * rows * width;
  Kernel kernel;
  kernel.precision = Precision::fp16;
  kernel.rows = rows;
  kernel.cols = width;
  kernel.bytes_read = Bytes(2 * tensor);
  kernel.bytes_written = Bytes(tensor);
  return kernel;
}

const char* duration_class(double seconds) {
  return seconds < 10e-6    ? "below 10 us"
         : seconds < 50e-6  ? "from 10 us"
         : seconds < 150e-6 ? "from 50 us"
                            : "from 150 us";
}

std::string error_tables(const HalfMemoryTable& table, const GpuLookup& lookup,
                         const PredictorWeights& weights) {
  const GpuSpec gpu = lookup(weights.half_memory->gpu);
  const TesseraPredictor by_bytes(gpu, weights);
  const HalfMemoryPredictor fitted(gpu, *weights.half_memory);
  ErrorGroups fp32, half;
  for (const HalfMemoryMeasurement& row : table.rows) {
    if (!row.held_out || row.calls > 1 || row.op != HalfMemoryOp::add) continue;
    const Kernel kernel = residual_add(static_cast<std::int64_t>(row.shape.rows), row.width);
    const double own = fitted.predict(row.op, row.shape).duration.value();
    for (const char* name :
         {duration_class(row.seconds), row.seconds < 50e-6 ? "all < 50 us" : "all >= 50 us"}) {
      fp32.add(name, by_bytes.duration(kernel).value(), row.seconds);
      half.add(name, own, row.seconds);
    }
  }
  return "\nHeld-out residual adds by the FP32 model with their bytes, fitted to none of them, "
         "error "
         "[%]\n" +
         fp32.table() + "by the model fitted to the other four fifths\n" + half.table();
}

std::string share_table(const GpuLookup& lookup, const PredictorWeights& weights) {
  constexpr std::int64_t kRows = 65536, kWidth = 4096;
  std::string text =
      "\nShare of the memory bandwidth that an add and a norm of 65536 x 4096 16-bit elements "
      "reach, by the FP32 model;\nthe add as a copy of A100-SXM4-80GB's fitted share\n";
  text += formatted("%-16s %6s %6s %6s\n", "", "add", "norm", "copied");
  for (const TrainedGpu& trained : weights.gpus) {
    const GpuSpec gpu = lookup(trained.effect.gpu);
    const TesseraPredictor predictor(gpu, weights);
    const auto share = [&](const Kernel& kernel, Seconds time) {
      return static_cast<double>(kernel.bytes().value()) / gpu.memory_bandwidth.value() /
             time.value();
    };
    const Kernel add = residual_add(kRows, kWidth);
    Kernel norm = add;
    norm.kind = KernelKind::layer_norm;
    norm.bytes_read = norm.bytes_written;
    const HalfMemoryPredictor copy(gpu, *weights.half_memory);
    const Seconds copied = copy.duration({.op = HalfMemoryOp::add, .rows = kRows, .width = kWidth});
    text +=
        formatted("%-16s %6.2f %6.2f %6.2f\n", gpu.id.c_str(), share(add, predictor.duration(add)),
                  share(norm, predictor.duration(norm)), share(add, copied));
  }
  return text;
}

}  // namespace

std::string half_memory_comparison(const HalfMemoryTable& table, const GpuLookup& lookup,
                                   const PredictorWeights& weights) {
  return error_tables(table, lookup, weights) + share_table(lookup, weights);
}

}  // namespace tessera
