#include "sim/report/drawings/timeline_slices.h"

#include <algorithm>

#include "sim/report/palette.h"

namespace tessera {
namespace {

/// Since when an op does what it is there for, instead of waiting for peers.
Seconds active_since(const TimelineIndex& index, int rank, const ProgramOp& op,
                     const OpRecord& record) {
  if (is_collective(op.kind)) return record.transfer_start;
  if (op.kind != OpKind::recv) return record.start;
  const auto send = index.send_of(rank, op);
  return send ? std::clamp(send->record.start, record.start, record.end) : record.start;
}

bool look_like_one(const TimelineSlice& a, const TimelineSlice& b, Seconds resolution) {
  if (a.kind != b.kind || b.begin - a.end >= resolution) return false;
  const Seconds shorter = std::min(a.end - a.begin, b.end - b.begin);
  return a.micro_batch == b.micro_batch || shorter < resolution;
}

void append(std::vector<TimelineSlice>& slices, const TimelineSlice& slice, Seconds resolution) {
  if (slice.end <= slice.begin) return;
  if (slices.empty() || !look_like_one(slices.back(), slice, resolution)) {
    slices.push_back(slice);
    return;
  }
  slices.back().end = slice.end;
  if (slices.back().micro_batch != slice.micro_batch) slices.back().micro_batch = -1;
}

}  // namespace

std::vector<TimelineSlice> timeline_slices(const TimelineIndex& index, int rank, StreamKind stream,
                                           Seconds resolution) {
  std::vector<TimelineSlice> slices;
  const auto& ops = index.program_of(rank).ops;
  for (const OpRecord& record : index.records_of(rank)) {
    const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
    if (op.stream != stream) continue;
    const Seconds active = active_since(index, rank, op, record);
    append(slices, {TimeCategory::other_idle, record.start, active, -1}, resolution);
    append(slices, {class_of(op), active, record.end, op.micro_batch}, resolution);
  }
  return slices;
}

}  // namespace tessera
