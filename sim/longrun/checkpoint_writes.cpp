#include "sim/longrun/checkpoint_writes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera {
namespace {

void put_first(const ProgramOp& op, RankProgram& stage) {
  for (ProgramOp& other : stage.ops) {
    for (std::int32_t& awaited : other.waits) awaited += awaited >= 0 ? 1 : 0;
  }
  for (PassSpan& pass : stage.passes) {
    ++pass.begin;
    ++pass.end;
  }
  stage.ops.insert(stage.ops.begin(), op);
}

}  // namespace

TimedProgram with_checkpoint_writes(TimedProgram timed, Bytes per_gpu) {
  ProgramOp write;
  write.kind = OpKind::copy_out;
  write.stream = StreamKind::host;  // out of the node
  write.bytes = per_gpu;
  for (RankProgram& stage : timed.program.stages) put_first(write, stage);
  return timed;
}

Bytes written_in_step(const CheckpointCost& cost, Seconds step) {
  const double share = std::min(1.0, step / cost.total());
  return Bytes(std::llround(share * static_cast<double>(cost.bytes_per_gpu.value())));
}

double write_slowdown(const CheckpointCost& cost, Seconds step, Seconds with_write) {
  constexpr double kMost = 10;
  const Seconds longer = std::max(Seconds(0), with_write - step);
  if (cost.total() >= step) return 1 + longer / step;
  // All of it falls into the write, which is a part of the step.
  const double share = longer / cost.total();
  return share < 1 - 1 / kMost ? 1 / (1 - share) : kMost;
}

}  // namespace tessera
