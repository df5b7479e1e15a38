#include "workloads/parallel/update_gathers.h"

#include <iterator>

#include "workloads/sharding.h"

namespace tessera {

UpdateGathers::UpdateGathers(PassLibrary& library, const StepOptions& step, OpQueue& queue)
    : library_(library),
      step_(step),
      queue_(queue),
      on_(gathers_updates(step)),
      overlaps_(on_ && step.data_parallel.overlap_parameters && !step.layout.experts_apart()) {}

void UpdateGathers::add_chunk(int begin, const std::vector<GradientBucket>& buckets) {
  if (!overlaps_) return;
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket)
    gathers_[begin].push_back({*bucket, -1});
}

std::int32_t UpdateGathers::start(GroupKind group, std::int64_t parameters, Phase phase) {
  ProgramOp op;
  op.kind = OpKind::all_gather;
  op.group = group;
  op.stream = StreamKind::data_comm;
  op.phase = phase;
  op.bytes = Bytes(element_bytes(step_.formats.parameters) * parameters);
  if (phase == Phase::optimizer) op.waits = {queue_.last_kernels(), -1};
  return queue_.add(op);
}

/// Stages that wait for their first message gather meanwhile.
/// Source: Megatron-Core optimizer/distrib_optimizer.py, zero_grad() starts the first gather.
void UpdateGathers::begin() {
  if (gathers_.empty() || gathers_.begin()->second.empty()) return;
  Gather& first = gathers_.begin()->second.front();
  first.op = start(GroupKind::shard, first.bucket.parameters, Phase::forward);
}

void UpdateGathers::before(int position, const ScheduledPass& pass) {
  if (!overlaps_ || pass.direction != PassDirection::forward) return;
  const auto chunk = std::prev(gathers_.upper_bound(position));
  std::int32_t needed = -1;
  for (std::size_t i = 0; i < chunk->second.size(); ++i) {
    Gather& gather = chunk->second[i];
    if (gather.bucket.ready > position) break;
    const bool passed = gather.op >= 0 && gather.bucket.first < position;
    if (passed) continue;
    if (gather.op < 0)
      gather.op = start(GroupKind::shard, gather.bucket.parameters, Phase::forward);
    needed = gather.op;
    const bool has_next = i + 1 < chunk->second.size();
    if (has_next && chunk->second[i + 1].op < 0) {
      Gather& next = chunk->second[i + 1];
      next.op = start(GroupKind::shard, next.bucket.parameters, Phase::forward);
    }
  }
  if (needed >= 0) queue_.await(needed, library_.empty_segment());
}

void UpdateGathers::finish(std::int64_t parameters, std::int64_t experts) {
  if (!on_ || overlaps_) return;
  if (shard_ranks(step_) > 1) start(GroupKind::shard, parameters - experts, Phase::optimizer);
  if (experts > 0 && expert_shard_ranks(step_) > 1)
    start(GroupKind::expert_data, experts, Phase::optimizer);
}

}  // namespace tessera
