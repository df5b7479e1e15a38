#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lab/validate/models/operator_class.h"
#include "predictor/kernel_predictor.h"
#include "workloads/model_graph.h"

namespace tessera {

/// What was timed of an operator.
enum class OperatorPass : std::uint8_t { forward, backward, accumulate };
inline constexpr std::array kOperatorPasses{OperatorPass::forward, OperatorPass::backward,
                                            OperatorPass::accumulate};

std::string_view label_of(OperatorPass pass);

/// A kernel that an operator launches, without its launch.
struct OperatorKernel {
  Kernel kernel;
  Seconds time;
  LogSpread spread;  ///< of the time; zero where unknown
};

/// One pass of an operator that was timed, or that our graph launches, or both.
struct OperatorMatch {
  OperatorKey key;
  OperatorPass pass = OperatorPass::forward;
  bool timed = false;
  int kernels = 0;    ///< that our graph launches; 0 = none
  Seconds measured;   ///< 0 where not timed
  Seconds predicted;  ///< isolated call; 0 where nothing is launched
  std::vector<OperatorKernel> launched;
  bool matched() const { return timed && kernels > 0; }
};

/// Pairs the timed operators with those of the blocks of `graph`, each block once, as a trace with
/// one layer holds them. Operators of one key are paired in order. A pass that was timed but
/// launches nothing (a view's backward, dropout in inference) and one that we launch but nobody
/// timed (copies that a layout demands) stay alone. `graph` is an eager one.
///
/// Prediction of an isolated operator: its kernels one after the other, and once the largest of
/// their launch overheads, behind which the later launches hide. Gradients are accumulated by one
/// call per parameter, each with its own overhead.
std::vector<OperatorMatch> match_operators(const std::vector<TimedOperator>& timed,
                                           const ModelGraph& graph,
                                           const KernelPredictor& predictor);

}  // namespace tessera
