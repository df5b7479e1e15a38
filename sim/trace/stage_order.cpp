#include "sim/trace/stage_order.h"

#include <array>
#include <utility>

namespace tessera {

StageOrder order_of(const RankProgram& stage, const Program& program) {
  StageOrder order;
  order.ahead_in_stream.reserve(stage.ops.size());
  order.ahead_in_queue.reserve(stage.ops.size());
  order.last_sync.reserve(stage.ops.size());
  std::array<std::int32_t, kStreamCount> last_of_stream;
  last_of_stream.fill(StageOrder::kNoOp);
  std::int32_t sync = StageOrder::kNoOp;
  std::int32_t queued = StageOrder::kNoOp;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(stage.ops.size()); ++i) {
    const ProgramOp& op = stage.ops[static_cast<std::size_t>(i)];
    order.ahead_in_stream.push_back(
        std::exchange(last_of_stream[static_cast<std::size_t>(op.stream)], i));
    order.ahead_in_queue.push_back(is_copy(op.kind) ? StageOrder::kNoOp : std::exchange(queued, i));
    order.last_sync.push_back(sync);
    if (op.stream == StreamKind::compute) order.compute_ops.push_back(i);
    const bool segment_sync = op.kind == OpKind::kernels && program.segment(op.segment).host_sync;
    if (op.host_sync || segment_sync) sync = i;
  }
  return order;
}

}  // namespace tessera
