#pragma once

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera::test {

inline constexpr int kLayer = 1;  ///< block of the graph of a decoder

/// as/h = 5 * 256 / 320 = 4.
inline ModelSpec narrow(ModelSpec model) {
  model.hidden = 320;
  model.heads = model.kv_heads = 5;
  model.head_dim = 64;
  model.ffn = 4 * 320;
  return model;
}
inline constexpr double kElements = 4 * 256 * 320;

inline StepOptions half_step(FrameworkProfile framework, AttentionKernels attention,
                             Precision precision = Precision::fp16) {
  framework.attention = attention;
  return in(precision, single_gpu(framework, StepMode::training, 4, 256));
}

inline double saved_per_element(const ModelSpec& model, const StepOptions& step) {
  const Block layer = build_model_graph(model, step).blocks[kLayer];
  return static_cast<double>(layer.saved.value()) / kElements;
}

}  // namespace tessera::test
