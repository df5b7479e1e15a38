#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/fit/tensor/tensor_coverage.h"
#include "lab/fit/tensor/tensor_load.h"
#include "lab/fit/tensor/tensor_rows.h"
#include "lab/fit/tensor/tensor_sums.h"
#include "lab/fit/tensor/tensor_training.h"

namespace tessera {

/// Of |predicted / measured - 1| [%].
struct TensorError {
  std::int64_t n = 0;
  double mean_pct = 0, median_pct = 0;
};

/// Errors on rows that no fit saw, of one regime.
struct TensorErrorRow {
  std::string gpu;
  std::string stack;         ///< empty: all of them
  std::string regime;        ///< ">= 50 us", ">= 50 us, m <= 64", ...
  TensorError form;          ///< the library known
  TensorError any_stack;     ///< the mean of the GPU's libraries
  TensorError roofline;      ///< max(FLOPs / peak, bytes / bandwidth) * constant of the GPU
  TensorError with_a_floor;  ///< the same, plus 3 us
};

/// Fitted to one GPU alone, scored on a fifth of the shapes of another.
struct TensorTransferRow {
  std::string source, target, method;
  TensorError longer;    ///< 50 us and longer
  TensorError large;     ///< of these, m > 1024
  TensorError shorter;   ///< below 50 us
  double worst_pct = 0;  ///< of the draws, `longer`; 0 where nothing is drawn
  double bias_pct = 0;   ///< mean signed error of `longer`
};

struct TensorStudy {
  std::vector<TensorErrorRow> shapes;    ///< TensorHoldout::shapes
  std::vector<TensorErrorRow> matrices;  ///< TensorHoldout::matrices
  std::vector<TensorSumError> sums;      ///< TensorHoldout::shapes
  std::vector<TensorTransferRow> transfers;
  std::vector<TensorLoad> loads;         ///< by the shipped weights
  std::vector<TensorCoverage> coverage;  ///< fitted without the shapes, then without the GPU
};

/// What the half-precision model misses on unseen shapes, matrices and GPUs. `training` of `data`.
TensorStudy study_tensor_gemm(const TensorData& data, const TensorTraining& training);

}  // namespace tessera
