#include "sim/report/analysis/straggler.h"

#include <algorithm>

#include "sim/report/clock_tick.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

using Waits = std::map<int, Seconds>;

/// Chains of slow causes are as long as kinds of groups lie within each other: tensor, context,
/// expert, shard, data.
constexpr int kLongestChain = 5;

/// How long `rank` waited for whom came last.
Waits waits_of(int rank, const TimelineIndex& index) {
  Waits waits;
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

/// What `late` waited for others beyond what `rank` did.
Waits surplus(const Waits& late, const Waits& own, int rank) {
  Waits more;
  for (const auto& [cause, waited] : late) {
    if (cause == rank) continue;
    const auto known = own.find(cause);
    const Seconds beyond = known == own.end() ? waited : waited - known->second;
    if (beyond > kClockTick) more[cause] = beyond;
  }
  return more;
}

Seconds total(const Waits& waits) {
  Seconds sum;
  for (const auto& [cause, waited] : waits) sum += waited;
  return sum;
}

}  // namespace

void StragglerSearch::add(const TimelineIndex& index, int rank, int stands_for) {
  ranks_[rank] = {stands_for, waits_of(rank, index)};
}

/// What `rank` waits, by who is to blame according to what the last ranks waited for whom.
StragglerSearch::Waits StragglerSearch::on_account(const Ranks& ranks, int rank) {
  const Waits& own = ranks.at(rank).waits;
  Waits account;
  for (const auto& [last, waited] : own) {
    const auto late = ranks.find(last);
    const Waits more = late == ranks.end() ? Waits() : surplus(late->second.waits, own, rank);
    const Seconds handed_on = std::min(waited, total(more));
    if (handed_on < waited) account[last] += waited - handed_on;
    for (const auto& [cause, part] : more) account[cause] += handed_on * (part / total(more));
  }
  return account;
}

std::optional<Straggler> StragglerSearch::worst() const {
  Ranks ranks = ranks_;
  for (int link = 0; link < kLongestChain; ++link) {
    Ranks next = ranks;
    for (auto& [rank, entry] : next) entry.waits = on_account(ranks, rank);
    ranks = std::move(next);
  }
  std::map<int, Straggler> by_cause;
  for (const auto& [rank, entry] : ranks) {
    for (const auto& [cause, waited] : entry.waits) {
      Straggler& straggler = by_cause[cause];
      straggler.rank = cause;
      straggler.waited += waited * entry.stands_for;
      straggler.longest = std::max(straggler.longest, waited);
    }
  }
  const auto worst =
      std::ranges::max_element(by_cause, {}, [](const auto& entry) { return entry.second.waited; });
  if (worst == by_cause.end()) return std::nullopt;
  return worst->second;
}

std::optional<Straggler> find_straggler(const TimelineIndex& index) {
  StragglerSearch search;
  for (const auto& [rank, stands_for] : index.simulated()) search.add(index, rank, stands_for);
  return search.worst();
}

}  // namespace tessera
