#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "predictor/kernel_predictor.h"
#include "sim/plan/memory/stage_graph.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// What the operators of a step take, each distinct kernel and collective predicted once.
class OperatorCosts {
 public:
  /// Both must outlive the object.
  OperatorCosts(const KernelPredictor& predictor, const TimedProgram& timed)
      : predictor_(predictor), timed_(timed) {}

  /// Of rank 0 and its groups, nothing else on the links.
  OpCost of(const GraphOp& op);

 private:
  const OpCost& collective(const GraphOp& op);
  OpCost collective_alone(const GraphOp& op);
  const std::vector<int>& gpus_of(GroupKind group);

  const KernelPredictor& predictor_;
  const TimedProgram& timed_;
  std::map<GroupKind, std::vector<int>> gpus_;
  std::map<Kernel, Seconds> kernels_;
  std::map<std::tuple<GroupKind, OpKind, std::int64_t>, OpCost> collectives_;
};

}  // namespace tessera
