#pragma once

#include <optional>

#include "workloads/step_options.h"

namespace tessera {

/// One model chunk of a stage.
struct ModelChunk {
  int stage = 0;
  int chunk = 0;
  bool operator==(const ModelChunk&) const = default;
};

/// Which part of the model each chunk of each stage holds, and who runs the parts before and behind
/// it. A micro-batch passes `length()` parts: without virtual stages one per stage; interleaved,
/// the stages once per chunk; in a V (ZBV) the stages upwards, then downwards; in DualPipe the
/// stages, by chunk 0 upwards and by chunk 1 downwards.
class VirtualPipeline {
 public:
  explicit VirtualPipeline(const StepOptions& step);

  bool two_way() const { return two_way_; }  ///< two copies of the model
  int chunks() const { return chunks_; }     ///< per stage
  int length() const { return two_way_ ? stages_ : stages_ * chunks_; }
  /// Part of the model, 0 to length() - 1.
  int part(ModelChunk chunk) const;
  /// Empty at the ends of the model.
  std::optional<ModelChunk> before(ModelChunk chunk) const { return neighbour(chunk, -1); }
  std::optional<ModelChunk> behind(ModelChunk chunk) const { return neighbour(chunk, 1); }

 private:
  std::optional<ModelChunk> neighbour(ModelChunk chunk, int step) const;

  int stages_;
  int chunks_;
  bool two_way_;
  bool in_v_;
};

}  // namespace tessera
