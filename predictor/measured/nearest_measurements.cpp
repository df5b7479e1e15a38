#include "predictor/measured/nearest_measurements.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "predictor/measured/timed_call.h"
#include "predictor/tessera_predictor.h"

namespace tessera {
namespace {

/// All sizes of a row that its time depends on; those that its operator lacks are 0.
std::array<std::int64_t, 8> sizes(const KernelMeasurement& row) {
  const bool linear = row.op == MeasuredOp::linear;  // only batch * m matters
  return {linear ? 1 : row.batch,
          linear ? row.batch * row.m : row.m,
          row.n,
          row.k,
          row.rows,
          row.cols,
          row.window,
          row.stride};
}

double octaves_between(const KernelMeasurement& a, const KernelMeasurement& b) {
  const auto of_a = sizes(a), of_b = sizes(b);
  double squares = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i] <= 0 || of_b[i] <= 0) continue;
    const double octaves = std::log2(static_cast<double>(of_a[i]) / static_cast<double>(of_b[i]));
    squares += octaves * octaves;
  }
  return std::sqrt(squares);
}

/// bf16 and fp16 multiply at one rate.
bool comparable(Precision a, Precision b) {
  const auto sixteen = [](Precision p) { return p == Precision::bf16 || p == Precision::fp16; };
  return a == b || (sixteen(a) && sixteen(b));
}

}  // namespace

std::vector<NearMeasurement> nearest_measurements(const MeasurementFile& file,
                                                  const KernelMeasurement& kernel,
                                                  const GpuSpec& gpu,
                                                  const PredictorWeights& weights,
                                                  const GpuLookup& lookup, std::size_t count) {
  std::vector<NearMeasurement> found;
  for (const KernelMeasurement& row : file.rows) {
    if (row.op != kernel.op || !comparable(row.precision, kernel.precision) || row.latency_us <= 0)
      continue;
    found.push_back({.row = row,
                     .gpu = file.gpus[row.gpu],
                     .octaves = octaves_between(row, kernel),
                     .measured = Seconds(row.latency_us * 1e-6)});
  }
  const auto key = [&](const NearMeasurement& near) {
    return std::pair(near.gpu != gpu.id, near.octaves);
  };
  std::ranges::stable_sort(found, {}, key);
  if (found.size() > count) found.resize(count);
  for (NearMeasurement& near : found) {
    near.row.line = {};  // lives as long as the file
    const TesseraPredictor predictor(near.gpu == gpu.id ? gpu : lookup(near.gpu), weights);
    near.predicted = timed_call(predictor, near.row);
  }
  return found;
}

}  // namespace tessera
