#include "lab/fit/fp32/neusight_training.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "lab/fit/fp32/octaves.h"
#include "lab/fit/seeded_descent.h"
#include "predictor/fp32/neusight.h"

namespace tessera {
namespace {

constexpr int kHiddenUnits = 32;
constexpr DescentSchedule kSchedule{.epochs = 30, .batch = 64, .rate = 5e-3};
constexpr std::size_t kTileExamples = 1024;

struct Example {
  std::array<double, 4> features{};
  double waves = 0;
  double ideal_seconds = 0;
  double seconds = 0;
};

struct ClassData {
  std::vector<Example> examples;
  std::vector<TileExample> tiles;
};

TileExample tile_example(const Kernel& kernel, const KernelMeasurement& row, SgemmFamily family) {
  const auto log_of = [](std::int64_t v) { return std::log(static_cast<float>(v)); };
  return {log_of(kernel.batch),
          log_of(kernel.m),
          log_of(kernel.n),
          log_of(kernel.k),
          row.tile_b,
          row.tile_a,
          family};
}

Example example_of(const NeusightTiling& tiling, const GpuTraits& gpu, double seconds) {
  return {.features = neusight_features(tiling, gpu),
          .waves = neusight_waves(tiling, gpu),
          .ideal_seconds = neusight_ideal_seconds(tiling, gpu),
          .seconds = seconds};
}

void add_rows(const GpuData& gpu, MeasuredOp op, ClassData& data) {
  const bool gemm = op == MeasuredOp::linear || op == MeasuredOp::bmm;
  for (const KernelMeasurement* row : rows_over_octaves(gpu, op)) {
    if (gemm && row->tile_a == 0) continue;
    const Kernel kernel = kernel_of(*row);
    // cuBLAS names tiles in column-major order: the second number runs along m.
    const NeusightTiling tiling = gemm ? neusight_gemm_tiling(kernel, row->tile_b, row->tile_a)
                                       : neusight_vector_tiling(kernel);
    data.examples.push_back(example_of(tiling, gpu.traits, row->latency_us * 1e-6));
    if (gemm) data.tiles.push_back(tile_example(kernel, *row, gpu.traits.family));
  }
}

std::vector<TileExample> thinned(const std::vector<TileExample>& tiles) {
  if (tiles.size() <= kTileExamples) return tiles;
  std::vector<TileExample> result;
  for (std::size_t i = 0; i < kTileExamples; ++i)
    result.push_back(tiles[i * tiles.size() / kTileExamples]);
  return result;
}

void normalise(const std::vector<Example>& examples, NeusightClass& net) {
  for (std::size_t f = 0; f < 4; ++f) {
    double sum = 0, squares = 0;
    for (const Example& e : examples) sum += e.features[f];
    const double mean = sum / static_cast<double>(examples.size());
    for (const Example& e : examples) squares += (e.features[f] - mean) * (e.features[f] - mean);
    net.feature_mean[f] = mean;
    net.feature_scale[f] = std::sqrt(squares / static_cast<double>(examples.size())) + 1e-6;
  }
}

/// Derivative of |t - p| / (t + p) by alpha and gamma.
Eigen::Vector2d loss_gradient(const Example& example, double alpha, double gamma) {
  const double utilization = neusight_utilization(alpha, gamma, example.waves);
  const double predicted = example.ideal_seconds / utilization;
  const double total = example.seconds + predicted;
  const double by_prediction =
      (predicted > example.seconds ? 1 : -1) * 2 * example.seconds / (total * total);
  const double by_utilization = -by_prediction * predicted / utilization;
  const double a = 1 / (1 + std::exp(-alpha)), g = 1 / (1 + std::exp(-gamma));
  return {-by_utilization * a * (1 - a) / example.waves, by_utilization * g * (1 - g)};
}

/// One step on the examples with the numbers `batch`.
void train_batch(const std::vector<Example>& examples, std::span<const std::size_t> batch,
                 double rate, NeusightClass& net, Adam& adam) {
  const auto columns = static_cast<Eigen::Index>(batch.size());
  Eigen::MatrixXd inputs(4, columns), gradient(2, columns);
  for (Eigen::Index c = 0; c < columns; ++c)
    for (std::size_t f = 0; f < 4; ++f)
      inputs(static_cast<Eigen::Index>(f), c) =
          (examples[batch[c]].features[f] - net.feature_mean[f]) / net.feature_scale[f];
  const Eigen::MatrixXd outputs = mlp_forward(net.mlp, inputs);
  for (Eigen::Index c = 0; c < columns; ++c)
    gradient.col(c) = loss_gradient(examples[batch[c]], outputs(0, c), outputs(1, c)) /
                      static_cast<double>(columns);
  adam.update(net.mlp.values, mlp_gradient(net.mlp, inputs, gradient), rate);
}

NeusightClass train_class(const ClassData& data, std::uint64_t seed) {
  NeusightClass net;
  net.tiles = thinned(data.tiles);
  std::mt19937_64 random(seed);
  net.mlp = initial_mlp({4, kHiddenUnits, kHiddenUnits, 2}, random);
  if (data.examples.empty()) return net;
  normalise(data.examples, net);
  Adam adam(net.mlp.values.size());
  descend(data.examples.size(), kSchedule, random,
          [&](std::span<const std::size_t> batch, double rate) {
            train_batch(data.examples, batch, rate, net, adam);
          });
  return net;
}

}  // namespace

std::vector<NeusightClass> train_neusight(const std::vector<const GpuData*>& gpus,
                                          std::uint64_t seed) {
  static constexpr std::array<MeasuredOp, kNeusightClasses> kOps{
      MeasuredOp::linear, MeasuredOp::bmm, MeasuredOp::add, MeasuredOp::softmax,
      MeasuredOp::layer_norm};
  std::vector<NeusightClass> nets;
  for (const MeasuredOp op : kOps) {
    ClassData data;
    for (const GpuData* gpu : gpus) {
      if (op == MeasuredOp::linear && gpu->linear_anomalous) continue;
      add_rows(*gpu, op, data);
      if (op == MeasuredOp::add) add_rows(*gpu, MeasuredOp::gelu, data);
    }
    nets.push_back(train_class(data, seed));
  }
  return nets;
}

}  // namespace tessera
