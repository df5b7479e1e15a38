#include "sim/report/analysis/straggler.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/report/clock_tick.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

using Waits = std::map<int, Seconds>;  ///< by the rank that is waited for

struct WaitingRank {
  int stands_for = 1;
  Waits waits;
};
using WaitingRanks = std::map<int, WaitingRank>;  ///< by the rank that waits

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

/// What `rank` waits, by who is to blame according to what the last ranks waited for whom.
Waits on_account(const WaitingRanks& ranks, int rank) {
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

/// The waits of `ranks`, each on the account of who caused it.
WaitingRanks settled(WaitingRanks ranks) {
  for (int link = 0; link < kLongestChain; ++link) {
    WaitingRanks next = ranks;
    for (auto& [rank, entry] : next) entry.waits = on_account(ranks, rank);
    ranks = std::move(next);
  }
  return ranks;
}

}  // namespace

std::optional<Straggler> find_straggler(const TimelineIndex& index) {
  WaitingRanks ranks;
  for (const auto& [rank, stands_for] : index.simulated())
    ranks[rank] = {stands_for, waits_of(rank, index)};
  std::map<int, Straggler> by_cause;
  for (const auto& [rank, entry] : settled(std::move(ranks))) {
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

}  // namespace tessera
