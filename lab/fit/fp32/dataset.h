#pragma once

#include <string>
#include <vector>

#include "hw/gpu.h"
#include "hw/gpu_lookup.h"
#include "lab/fit/fp32/gemm_fit.h"
#include "lab/fit/fp32/memory_fit.h"
#include "predictor/gpu/gpu_traits.h"
#include "predictor/measured/measurements.h"

namespace tessera {

/// What the training rows of one GPU show before any fit.
struct GpuData {
  GpuSpec spec;
  GpuTraits traits;
  std::vector<const KernelMeasurement*> rows;  ///< training split, in file order
  bool linear_anomalous = false;  ///< linear rows far slower than bmm rows; they are not used
  double sustained_flops = 0;     ///< measured power limit [FLOP/s]; 0 = none seen
  double reached_flops = 0;       ///< by good shapes in calls of 5 ms and longer; 0 = no such calls
};

/// Training rows by GPU. Throws InputError if the file holds a GPU that the FP32 model must never
/// see (`held_out_from_training`), or no training row.
std::vector<GpuData> training_data(const MeasurementFile& file, const GpuLookup& lookup);

/// GPUs kept for judging the model on hardware that it has not seen: A100 with 80 GB and everything
/// after Ampere.
bool held_out_from_training(const GpuSpec& gpu);

/// Kernels of a product that a fit uses: a few from every octave of duration, so that neither the
/// many short ones nor the few long ones decide alone.
std::vector<GemmSample> gemm_samples(const GpuData& gpu, int number, MeasuredOp op,
                                     LeftOutIngredient without = {});
std::vector<TrafficSample> memory_samples(const GpuData& gpu, int number);

/// 1st percentile of the latency of `op` [s]: the launch floor, roughly.
double fastest_seconds(const GpuData& gpu, MeasuredOp op);

}  // namespace tessera
