#include "sim/report/straggler.h"

#include <algorithm>
#include <map>

#include "sim/report/clock_tick.h"
#include "workloads/process_groups.h"

namespace tessera {
namespace {

/// How long `rank` waited for whom.
std::map<int, Seconds> waits_of(int rank, const TimelineIndex& index) {
  std::map<int, Seconds> waits;
  const auto& ops = index.program_of(rank).ops;
  for (const OpRecord& record : index.records_of(rank)) {
    if (record.last_rank < 0 || record.last_rank == rank) continue;
    const Seconds waited = record.transfer_start - record.start;
    const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
    if (waited > kClockTick && is_collective(op.kind) && !spans_stages(op.group))
      waits[record.last_rank] += waited;
  }
  return waits;
}

}  // namespace

void StragglerSearch::add(const TimelineIndex& index, int rank, int stands_for) {
  for (const auto& [last, waited] : waits_of(rank, index)) {
    Waits& waits = by_last_[last];
    waits.sum += waited * stands_for;
    waits.longest = std::max(waits.longest, waited);
  }
}

std::optional<Straggler> StragglerSearch::worst() const {
  std::optional<Straggler> worst;
  for (const auto& [rank, waits] : by_last_) {
    if (!worst || waits.sum > worst->waited) worst = Straggler{rank, waits.sum, waits.longest};
  }
  return worst;
}

std::optional<Straggler> find_straggler(const TimelineIndex& index) {
  StragglerSearch search;
  for (const auto& [rank, stands_for] : index.simulated()) search.add(index, rank, stands_for);
  return search.worst();
}

}  // namespace tessera
