#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "lab/fit/baselines/free_mlp.h"
#include "lab/fit/dual.h"
#include "lab/fit/fp32/conv_fit.h"
#include "lab/fit/fp32/gemm_fit.h"
#include "lab/fit/fp32/memory_fit.h"
#include "predictor/fp32/mlp.h"
#include "tests/predictor/synthetic_convolutions.h"
#include "tests/predictor/test_gpus.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {
namespace {

constexpr double kStep = 1e-6;

/// Largest difference between the dual derivative and a central difference, over all parameters.
template <int N, class Residual>
double worst_difference(std::array<double, N> x, Residual residual) {
  std::array<Dual<N>, N> duals;
  for (int i = 0; i < N; ++i) duals[i] = Dual<N>::variable(x[i], i);
  const Dual<N> exact = residual(std::span<const Dual<N>>(duals));
  double worst = 0;
  for (int i = 0; i < N; ++i) {
    std::array<double, N> up = x, down = x;
    up[i] += kStep;
    down[i] -= kStep;
    const double difference =
        (residual(std::span<const double>(up)) - residual(std::span<const double>(down))) /
        (2 * kStep);
    worst = std::max(worst, std::abs(difference - exact.derivatives(i)));
  }
  return worst;
}

/// Unconstrained parameters of plausible size, no two alike.
template <int N>
std::array<double, N> spread_parameters() {
  std::array<double, N> x{};
  for (int i = 0; i < N; ++i) x[i] = 0.3 * std::sin(1.7 * i + 0.4);
  return x;
}

GemmSample gemm_sample(const Kernel& kernel, double seconds) {
  return {.gpu = 0, .shape = gemm_shape(kernel), .seconds = seconds};
}

TEST(Gradients, OfTheGemmModelEqualFiniteDifferences) {
  constexpr int kCount = GemmLayoutOfParameters::kCount;
  auto x = spread_parameters<kCount>();
  x[1] = 3;                                 // prologue of 20 in k
  x[6] = 11;                                // stride centre at 2048
  x[GemmLayoutOfParameters::kFloor] = 3.5;  // floor of 33 us
  const std::vector<GemmSample> samples{
      gemm_sample(linear_kernel(1000, 3000, 1500), 1e-3),   // several waves
      gemm_sample(linear_kernel(60, 90, 9000), 1e-4),       // split contraction
      gemm_sample(batched_kernel(40, 129, 65, 300), 1e-4),  // NN
      gemm_sample(linear_kernel(8192, 4096, 4096), 5e-2)};  // one that fills the GPU
  for (const char* id : {"P4", "T4", "A100-PCIe-40GB"}) {
    const GpuTraits gpu = gpu_traits(test_gpu(id));
    for (const GemmSample& sample : samples) {
      const auto residual = [&]<class T>(std::span<const T> p) {
        return gemm_residual<T>(sample, gpu, p);
      };
      EXPECT_LT((worst_difference<kCount>(x, residual)), 1e-6) << id;
    }
  }
}

TEST(Gradients, OfTheConvolutionModelEqualFiniteDifferences) {
  using At = ConvolutionLayoutOfParameters;
  auto x = spread_parameters<At::kCount>();
  x[1] = 3;           // prologue of 20 in k
  x[At::kFloor] = 4;  // floor of 55 us
  const std::vector<Kernel> kernels{
      square_convolution(32, 256, 256, 28),     // staged Winograd
      square_convolution(4, 700, 20, 9),        // fused Winograd, few blocks
      square_convolution(60, 3, 500, 40),       // implicit product
      square_convolution(16, 64, 128, 28, 1)};  // plain product
  for (const char* id : {"P4", "V100-PCIe-32GB"}) {
    const GpuTraits gpu = gpu_traits(test_gpu(id));
    for (const Kernel& kernel : kernels) {
      const ConvolutionSample sample{
          .shape = convolution_shape(kernel), .seconds = 1e-3, .earlier = 2};
      const auto residual = [&]<class T>(std::span<const T> p) {
        return convolution_residual<T>(sample, gpu, p);
      };
      EXPECT_LT((worst_difference<At::kCount>(x, residual)), 1e-6) << id;
    }
  }
}

TEST(Gradients, OfTheMemoryModelEqualFiniteDifferences) {
  constexpr int kCount = MemoryParameters<double>::kCount + 2;
  auto x = spread_parameters<kCount>();
  x[kCount - 1] = 3;  // floor of 20 us
  const GpuTraits gpu = gpu_traits(test_gpu("V100-PCIe-32GB"));
  for (const KernelKind kind :
       {KernelKind::elementwise, KernelKind::softmax, KernelKind::layer_norm}) {
    for (const std::int64_t rows : {100, 20000}) {  // L2-resident and not
      const TrafficSample sample{
          .gpu = 0, .shape = memory_shape(row_kernel(kind, rows, 2000)), .seconds = 1e-4};
      const auto residual = [&]<class T>(std::span<const T> p) {
        return memory_residual<T>(sample, gpu, p);
      };
      EXPECT_LT((worst_difference<kCount>(x, residual)), 1e-6);
    }
  }
}

TEST(Gradients, OfTheNetEqualFiniteDifferences) {
  MlpWeights mlp{.sizes = {4, 5, 3, 2}, .values = {}};
  for (std::size_t i = 0; i < mlp_value_count(mlp.sizes); ++i)
    mlp.values.push_back(0.5 * std::sin(0.9 * static_cast<double>(i)));
  Eigen::MatrixXd inputs(4, 7);
  for (int i = 0; i < inputs.size(); ++i) inputs(i) = std::cos(2.0 * i);
  const auto loss = [&](const MlpWeights& net) {
    return 0.5 * mlp_forward(net, inputs).squaredNorm();
  };
  const auto gradient = mlp_gradient(mlp, inputs, mlp_forward(mlp, inputs));
  for (std::size_t i = 0; i < mlp.values.size(); ++i) {
    MlpWeights up = mlp, down = mlp;
    up.values[i] += kStep;
    down.values[i] -= kStep;
    EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / (2 * kStep), 1e-6) << "weight " << i;
  }
}

TEST(Gradients, OfTheFreeNetsLossEqualFiniteDifferences) {
  MlpWeights mlp{.sizes = {8, 4, 1}, .values = {}};
  for (std::size_t i = 0; i < mlp_value_count(mlp.sizes); ++i)
    mlp.values.push_back(0.5 * std::sin(0.7 * static_cast<double>(i)));
  Eigen::MatrixXd inputs(8, 5), targets(1, 5);
  for (int i = 0; i < inputs.size(); ++i) inputs(i) = std::cos(1.3 * i);
  targets = mlp_forward(mlp, inputs);
  targets.array() += Eigen::Array<double, 1, 5>(0.5, -0.3, 0.01, -0.02, 0.0);  // both branches
  const auto loss = [&](const MlpWeights& net) {
    return log_error_loss(mlp_forward(net, inputs), targets).value;
  };
  const auto gradient =
      mlp_gradient(mlp, inputs, log_error_loss(mlp_forward(mlp, inputs), targets).gradient);
  for (std::size_t i = 0; i < mlp.values.size(); ++i) {
    MlpWeights up = mlp, down = mlp;
    up.values[i] += kStep;
    down.values[i] -= kStep;
    EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / (2 * kStep), 1e-6) << "weight " << i;
  }
}

}  // namespace
}  // namespace tessera
