#include "sim/trace/timeline_index.h"

#include <algorithm>
#include <cassert>

namespace tessera {
namespace {

std::vector<TimelineIndex::SimulatedRank> simulated_ranks(const RankFolding& folding, int ranks) {
  std::vector<int> stands_for(static_cast<std::size_t>(ranks), 0);
  for (int rank = 0; rank < ranks; ++rank) ++stands_for[static_cast<std::size_t>(folding.of(rank))];
  std::vector<TimelineIndex::SimulatedRank> simulated;
  for (int rank = 0; rank < ranks; ++rank) {
    const int count = stands_for[static_cast<std::size_t>(rank)];
    if (count > 0) simulated.push_back({rank, count});
  }
  return simulated;
}

/// Where the entries of each rank begin in a list that is ordered by rank.
template <class Entry>
std::vector<std::size_t> first_by_rank(const std::vector<Entry>& entries, int ranks) {
  std::vector<std::size_t> first(static_cast<std::size_t>(ranks) + 1, 0);
  for (const Entry& entry : entries) ++first[static_cast<std::size_t>(entry.rank) + 1];
  for (std::size_t rank = 1; rank < first.size(); ++rank) first[rank] += first[rank - 1];
  return first;
}

/// The same for records, of which every simulated rank has one for each op.
std::vector<std::size_t> first_records(const TimedProgram& timed,
                                       std::span<const TimelineIndex::SimulatedRank> simulated) {
  const Program& program = timed.program;
  std::vector<std::size_t> first(static_cast<std::size_t>(program.layout.world_size()) + 1, 0);
  for (const auto& [rank, stands_for] : simulated)
    first[static_cast<std::size_t>(rank) + 1] = program.program_of(rank).ops.size();
  for (std::size_t rank = 1; rank < first.size(); ++rank) first[rank] += first[rank - 1];
  return first;
}

template <class Entry>
std::span<const Entry> entries_of(std::span<const Entry> entries,
                                  const std::vector<std::size_t>& first, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return entries.subspan(first[at], first[at + 1] - first[at]);
}

}  // namespace

TimelineIndex::TimelineIndex(const TimedProgram& timed, const Timeline& timeline)
    : timed_(timed),
      timeline_(timeline),
      simulated_(simulated_ranks(timeline.folding, timed.program.layout.world_size())),
      first_record_(first_records(timed, simulated_)),
      first_sample_(first_by_rank(timeline.memory, timed.program.layout.world_size())) {
  for (std::size_t number = 0; number < timed.program.stages.size(); ++number) {
    const RankProgram& stage = timed.program.stages[number];
    orders_.push_back(tessera::order_of(stage, timed.program));
    launches_.push_back(launches_of(timed, stage));
    for (std::size_t i = 0; i < stage.ops.size(); ++i) {
      const ProgramOp& op = stage.ops[i];
      if (op.kind != OpKind::send) continue;
      send_op_[{static_cast<int>(number), op.peer_stage, op.tag}] = static_cast<std::int32_t>(i);
    }
  }
}

const RankProgram& TimelineIndex::program_of(int rank) const {
  return timed_.program.program_of(rank);
}

int TimelineIndex::number_of(int rank) const {
  return timed_.program.program_number(rank);
}

const StageOrder& TimelineIndex::order_of(int rank) const {
  return orders_[static_cast<std::size_t>(number_of(rank))];
}

std::span<const OpRecord> TimelineIndex::records_of(int rank) const {
  const auto records =
      entries_of(std::span<const OpRecord>(timeline_.ops), first_record_, folding().of(rank));
  assert(records.size() == program_of(rank).ops.size());
  return records;
}

std::vector<Seconds> TimelineIndex::launch_dates_of(int rank) const {
  const StageLaunches& launches = launches_[static_cast<std::size_t>(number_of(rank))];
  const std::span<const OpRecord> records = records_of(rank);
  std::vector<Seconds> dates;
  dates.reserve(records.size());
  LaunchRun run;
  LaunchDates next;
  auto awaited = launches.waits.begin();
  for (const OpRecord& record : records) {
    dates.push_back(next.of(record.op, run, launches));
    if (awaited == launches.waits.end() || *awaited != record.op) continue;
    run = {record.op, record.end, {}};
    ++awaited;
  }
  return dates;
}

std::span<const MemorySample> TimelineIndex::memory_of(int rank) const {
  return entries_of(std::span<const MemorySample>(timeline_.memory), first_sample_,
                    folding().of(rank));
}

std::span<const MemoryStall> TimelineIndex::stalls_of(int rank) const {
  const auto stalls =
      std::ranges::equal_range(timeline_.memory_stalls, folding().of(rank), {}, &MemoryStall::rank);
  return {stalls.begin(), stalls.end()};
}

std::span<const PressureRerun> TimelineIndex::reruns_of(int rank) const {
  const auto reruns = std::ranges::equal_range(timeline_.pressure_reruns, folding().of(rank), {},
                                               &PressureRerun::rank);
  return {reruns.begin(), reruns.end()};
}

std::optional<TimelineIndex::Send> TimelineIndex::send_of(int rank, const ProgramOp& recv) const {
  RankPosition sender = position(rank);
  const int receiver = sender.pipeline;
  sender.pipeline = recv.peer_stage;
  const int sender_rank = rank_of(sender, timed_.program.layout);
  const int number = timed_.program.program_number(sender_rank);
  const auto found = send_op_.find({number, receiver, recv.tag});
  if (found == send_op_.end()) return std::nullopt;
  return Send{sender_rank, records_of(sender_rank)[static_cast<std::size_t>(found->second)]};
}

}  // namespace tessera
