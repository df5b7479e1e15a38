#include "sim/report/drawings/timeline_slices.h"

#include <algorithm>
#include <array>

#include "sim/report/time_category.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kSliceKindCount> kSliceLabels{
    "forward",         "loss",
    "backward",        "gradient reduction",
    "optimizer",       "tensor collective",
    "data collective", "other collective",
    "message",         "copy",
    "waiting"};

SliceKind slice_kind_of(const ProgramOp& op) {
  switch (op.kind) {
    case OpKind::kernels:
      return static_cast<SliceKind>(op.phase);  // the phases come first, in the same order
    case OpKind::send:
    case OpKind::recv:
      return SliceKind::message;
    case OpKind::copy_out:
    case OpKind::copy_in:
      return SliceKind::copy;
    default:
      break;
  }
  switch (exposed_category(op.group)) {
    case TimeCategory::exposed_tensor:
      return SliceKind::tensor_collective;
    case TimeCategory::exposed_data:
      return SliceKind::data_collective;
    default:
      return SliceKind::other_collective;
  }
}
static_assert(static_cast<int>(SliceKind::optimizer) == static_cast<int>(Phase::optimizer));

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

std::string_view label_of(SliceKind kind) {
  return kSliceLabels[static_cast<std::size_t>(kind)];
}

std::vector<TimelineSlice> timeline_slices(const TimelineIndex& index, int rank, StreamKind stream,
                                           Seconds resolution) {
  std::vector<TimelineSlice> slices;
  const auto& ops = index.program_of(rank).ops;
  for (const OpRecord& record : index.records_of(rank)) {
    const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
    if (op.stream != stream) continue;
    const Seconds active = active_since(index, rank, op, record);
    append(slices, {SliceKind::waiting, record.start, active, -1}, resolution);
    append(slices, {slice_kind_of(op), active, record.end, op.micro_batch}, resolution);
  }
  return slices;
}

}  // namespace tessera
