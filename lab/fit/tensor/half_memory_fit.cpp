#include "lab/fit/tensor/half_memory_fit.h"

#include <algorithm>
#include <cmath>

#include "hw/units/input_error.h"
#include "lab/fit/dual.h"
#include "lab/fit/least_absolute.h"

namespace tessera {
namespace {

constexpr int kN = kHalfMemoryParameters;
using Gradient = Dual<kN>;

/// Efficiency, launch, gain, centre, slope, bytes per row.
constexpr HalfMemoryVector kStart{-.5, 1, -.7, .5, 0, 5};
constexpr double kNoRows = -20, kNoGain = -20;  // unconstrained
constexpr double kFixed = 1e6;
constexpr double kDeviations = 1.25;
constexpr double kLeastSeconds = 20e-6;

/// The profiler rounds to microseconds.
double duration_weight(double seconds) {
  return seconds < 10e-6 ? 0.1 : seconds < 50e-6 ? 0.4 : 1.0;
}

double spread_of(const HalfMemoryTable& table, HalfMemoryOp op, const HalfMemoryGpu& gpu,
                 const HalfMemoryVector& x) {
  double sum = 0, n = 0;
  for (const HalfMemoryMeasurement* row : rows_of(table, op, true)) {
    if (row->seconds < kLeastSeconds) continue;
    sum += std::abs(half_memory_residual<double>(row->shape, row->seconds, gpu, x));
    n += 1;
  }
  return n > 0 ? kDeviations * sum / n : 0.15;
}

}  // namespace

HalfMemoryGpu half_memory_gpu(const GpuSpec& gpu) {
  const auto require = [&](double value, const char* figure) {
    if (value > 0) return value;
    throw InputError({"GPU " + gpu.id, std::string(figure) + " is missing",
                      "the kernel models need it; add it to the hardware description"});
  };
  return {.bandwidth = require(gpu.memory_bandwidth.value(), "memory bandwidth"),
          .l2 = require(static_cast<double>(gpu.l2.value()), "L2 size")};
}

HalfMemoryVector fit_half_memory(const std::vector<const HalfMemoryMeasurement*>& rows,
                                 const HalfMemoryGpu& gpu, const HalfMemoryForm& form) {
  LeastAbsoluteProblem problem;
  problem.rows = rows.size();
  for (const auto* row : rows) problem.weights.push_back(duration_weight(row->seconds));
  problem.start = Eigen::VectorXd::Zero(kN);
  problem.pull = Eigen::VectorXd::Constant(kN, kWeakPull);
  for (int i = 0; i < kN; ++i) problem.start(i) = kStart[i];
  const auto fix = [&](int parameter, double value) {
    problem.start(parameter) = value;
    problem.pull(parameter) = kFixed;
  };
  if (!form.rows) fix(kHalfRow, kNoRows);
  if (!form.cache) fix(kHalfGain, kNoGain);
  problem.residual = [&](std::size_t i, const Eigen::VectorXd& x, bool, RowResidual& out) {
    std::array<Gradient, kN> duals;
    for (int p = 0; p < kN; ++p) duals[p] = Gradient::variable(x(p), p);
    const Gradient residual = half_memory_residual<Gradient>(rows[i]->shape, rows[i]->seconds, gpu,
                                                             std::span<const Gradient>(duals));
    out.value = residual.value;
    out.derivatives.clear();
    for (int p = 0; p < kN; ++p) out.derivatives.push_back({p, residual.derivatives(p)});
  };
  const Eigen::VectorXd fitted = fit_least_absolute(problem).parameters;
  HalfMemoryVector x{};
  for (int i = 0; i < kN; ++i) x[i] = fitted(i);
  return x;
}

std::vector<const HalfMemoryMeasurement*> rows_of(const HalfMemoryTable& table, HalfMemoryOp op,
                                                  bool held_out) {
  std::vector<const HalfMemoryMeasurement*> rows;
  for (const HalfMemoryMeasurement& row : table.rows)
    if (row.op == op && row.held_out == held_out && row.calls == 1) rows.push_back(&row);
  return rows;
}

HalfMemoryWeights train_half_memory(const HalfMemoryTable& table, const GpuLookup& lookup,
                                    const HalfMemoryForm& form) {
  if (table.rows.empty())
    throw InputError({table.file, "holds no row", "the format is that of memory_bound_fp16.csv"});
  const std::string& id = table.rows.front().gpu;
  if (std::ranges::any_of(table.rows, [&](const auto& row) { return row.gpu != id; }))
    throw InputError({table.file, "holds rows of several GPUs", "one GPU per file"});
  const HalfMemoryGpu gpu = half_memory_gpu(lookup(id));
  HalfMemoryWeights weights;
  weights.data = {.file = table.file, .fnv1a = table.fnv1a, .rows = 0};
  weights.gpu = id;
  for (std::size_t i = 0; i < kHalfMemoryOps; ++i) {
    const auto op = static_cast<HalfMemoryOp>(i);
    const auto rows = rows_of(table, op, false);
    weights.data.rows += static_cast<std::int64_t>(rows.size());
    weights.classes[i] = fit_half_memory(rows, gpu, form);
    weights.spread[i] = spread_of(table, op, gpu, weights.classes[i]);
  }
  return weights;
}

}  // namespace tessera
