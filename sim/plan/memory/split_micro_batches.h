#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "workloads/program/program.h"

namespace tessera {

/// Micro-batches of a stage's model chunks whose backward pass is split in two. Zero bubble splits
/// all of them, DualPipe some.
class SplitMicroBatches {
 public:
  explicit SplitMicroBatches(const RankProgram& stage) {
    for (const PassSpan& pass : stage.passes)
      if (pass.part == PassPart::weight_gradient) split_.insert({pass.chunk, pass.micro_batch});
  }

  /// Of the micro-batch that `pass` works on.
  bool contains(const PassSpan& pass) const {
    return split_.contains({pass.chunk, pass.micro_batch});
  }

 private:
  std::set<std::pair<std::int32_t, std::int32_t>> split_;  ///< chunk and micro-batch
};

}  // namespace tessera
