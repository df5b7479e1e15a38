#include "app/search/stage_walk.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

bool is_of_pass(const ProgramOp& op) {
  return op.kind == OpKind::kernels && op.stream == StreamKind::compute && op.micro_batch >= 0;
}

}  // namespace

StageEnds walked_stage(const Program& program, const RankProgram& stage, int rank,
                       const std::vector<TimedSegment>& segments, Seconds first_pass,
                       CollectiveTimes& times) {
  std::array<Seconds, kStreamCount> streams{};
  std::vector<Seconds> ends;
  ends.reserve(stage.ops.size());
  StageEnds last;
  for (const ProgramOp& op : stage.ops) {
    Seconds& stream = streams[static_cast<std::size_t>(op.stream)];
    Seconds start = is_of_pass(op) ? std::max(stream, first_pass) : stream;
    for (const std::int32_t wait : op.waits)
      if (wait >= 0 && wait < std::ssize(ends))
        start = std::max(start, ends[static_cast<std::size_t>(wait)]);
    Seconds duration;
    if (op.kind == OpKind::kernels)
      duration = segments[static_cast<std::size_t>(op.segment.index())].duration;
    else if (is_collective(op.kind))
      duration = times.alone(op, rank, program);
    stream = start + duration;
    ends.push_back(stream);
    if (is_of_pass(op)) last.last_pass = std::max(last.last_pass, stream);
    last.all = std::max(last.all, stream);
  }
  return last;
}

}  // namespace tessera
