#include "sim/report/analysis/rank_breakdown.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

constexpr std::int32_t kNone = StageOrder::kNoOp;

/// Walks the compute stream of one rank.
class RankAccount {
 public:
  RankAccount(const TimedProgram& timed, const TimelineIndex& index, int rank)
      : timed_(timed),
        index_(index),
        rank_(rank),
        ops_(index.program_of(rank).ops),
        records_(index.records_of(rank)),
        order_(index.order_of(rank)) {
    for (const MemoryStall& stall : index.stalls_of(rank)) stalled_since_[stall.op] = stall.start;
  }

  TimeBreakdown run(Seconds step_time) {
    Seconds free_at;
    for (const std::int32_t op : order_.compute_ops) {
      charge_gap(op, free_at, charge_stall(op, free_at));
      charge_run(op);
      free_at = record_at(op).end;
    }
    charge_tail(free_at, step_time);
    return account_;
  }

 private:
  const ProgramOp& op_at(std::int32_t op) const { return ops_[static_cast<std::size_t>(op)]; }
  const OpRecord& record_at(std::int32_t op) const {
    return records_[static_cast<std::size_t>(op)];
  }
  bool pipelined() const { return timed_.program.layout.pipeline > 1; }
  std::int32_t later(std::int32_t a, std::int32_t b) const {
    if (a == kNone || b == kNone) return std::max(a, b);
    return record_at(b).end > record_at(a).end ? b : a;
  }

  Seconds launched(std::int32_t op) {
    if (launched_.empty()) launched_ = index_.launch_dates_of(rank_);
    return launched_[static_cast<std::size_t>(op)];
  }

  /// The op that ended last among those that `op` had to wait for.
  std::int32_t last_cause(std::int32_t op) const {
    const auto at = static_cast<std::size_t>(op);
    std::int32_t cause = later(order_.ahead_in_stream[at], order_.last_sync[at]);
    for (const std::int32_t awaited : op_at(op).waits) cause = later(cause, awaited);
    return cause;
  }

  /// The hardware queue that streams share came to `op` after its launch and after `cause`: it had
  /// waited for the op ahead of it.
  bool held_by_queue(std::int32_t op, std::int32_t cause) {
    const std::int32_t ahead = order_.ahead_in_queue[static_cast<std::size_t>(op)];
    if (!timed_.single_hardware_queue || ahead == kNone) return false;
    if (op_at(ahead).stream == StreamKind::compute) return false;
    const Seconds ready = cause == kNone ? Seconds() : record_at(cause).end;
    const Seconds ahead_began = record_at(ahead).start;
    return ahead_began > ready && ahead_began > launched(op);
  }

  /// The wait of `op` for memory; returns since when nothing else held it up.
  Seconds charge_stall(std::int32_t op, Seconds from) {
    const Seconds start = record_at(op).start;
    const auto stalled = stalled_since_.find(op);
    if (stalled == stalled_since_.end()) return start;
    const Seconds since = std::max(from, stalled->second);
    const Seconds again = rerun_between(since, start);
    account_[compute_category(op_at(op).phase)] += again;
    account_[TimeCategory::exposed_swap] += start - since - again;
    return since;
  }

  /// What memory pressure runs again for an op is of the op's pass, as in plans made ahead.
  Seconds rerun_between(Seconds from, Seconds to) const {
    Seconds sum;
    const std::span<const PressureRerun> reruns = index_.reruns_of(rank_);
    for (auto rerun = std::ranges::lower_bound(reruns, from, {}, &PressureRerun::start);
         rerun != reruns.end() && rerun->start < to; ++rerun)
      sum += std::min(rerun->end, to) - rerun->start;
    return sum;
  }

  /// Nothing ran in [from, to), and then `op` began.
  void charge_gap(std::int32_t op, Seconds from, Seconds to) {
    while (to > from) {
      const std::int32_t cause = last_cause(op);
      if (held_by_queue(op, cause)) {
        op = order_.ahead_in_queue[static_cast<std::size_t>(op)];
        to = charge_communication(op, from, to);
        continue;
      }
      const Seconds held_until = cause == kNone ? from : std::clamp(record_at(cause).end, from, to);
      account_[TimeCategory::host] += to - held_until;
      if (held_until <= from) return;
      to = charge_communication(cause, from, held_until);
      op = cause;
    }
  }

  /// `op` held the compute stream up until `to`, and at the earliest from `from` on; returns since
  /// when it did.
  Seconds charge_communication(std::int32_t op, Seconds from, Seconds to) {
    const OpRecord& record = record_at(op);
    const Seconds joined = std::clamp(record.start, from, to);
    switch (op_at(op).kind) {
      case OpKind::recv:
        return charge_recv(op, from, joined, to);
      case OpKind::send:
        account_[TimeCategory::exposed_pipeline] += to - joined;
        return joined;
      case OpKind::copy_out:
      case OpKind::copy_in:
        account_[TimeCategory::exposed_swap] += to - joined;
        return joined;
      case OpKind::kernels:
        if (op_at(op).stream != StreamKind::host) break;
        account_[TimeCategory::host] += to - joined;
        return joined;
      default:  // collectives, and kernels on a stream of their own
        break;
    }
    const GroupKind group = op_at(op).group;
    const bool waits_for_stages = pipelined() && spans_stages(group);
    const Seconds complete =
        waits_for_stages ? std::clamp(record.transfer_start, joined, to) : joined;
    account_[TimeCategory::bubble] += complete - joined;
    account_[exposed_category(group)] += to - complete;
    return joined;
  }

  /// Until the sender begins, the pipeline is at fault, whenever this rank asked for the message.
  Seconds charge_recv(std::int32_t op, Seconds from, Seconds joined, Seconds to) {
    const auto send = index_.send_of(rank_, op_at(op));
    const Seconds sent = send ? std::clamp(send->record.start, from, to) : joined;
    const Seconds since = sent > joined ? from : joined;
    const Seconds on_its_way = std::max(sent, joined);
    account_[TimeCategory::bubble] += on_its_way - since;
    account_[TimeCategory::exposed_pipeline] += to - on_its_way;
    return since;
  }

  void charge_run(std::int32_t op) {
    const OpRecord& record = record_at(op);
    if (op_at(op).kind != OpKind::kernels) {
      charge_communication(op, record.start, record.end);
      return;
    }
    const Seconds busy = busy_time(record, timed_.duration_of(rank_, op, op_at(op).segment));
    account_[compute_category(op_at(op).phase)] += busy;
    account_[TimeCategory::contention] += record.end - record.start - busy;
  }

  /// After the rank's last kernel: its own last message or collective, then the wait for others.
  void charge_tail(Seconds from, Seconds step_time) {
    const auto latest = std::ranges::max_element(records_, {}, &OpRecord::end);
    const std::int32_t last = latest == records_.end() ? kNone : latest->op;
    const Seconds done = last == kNone ? from : std::max(from, latest->end);
    account_[pipelined() ? TimeCategory::bubble : TimeCategory::other_idle] += step_time - done;
    if (done <= from) return;
    charge_gap(last, from, charge_communication(last, from, done));
  }

  const TimedProgram& timed_;
  const TimelineIndex& index_;
  int rank_;
  std::span<const ProgramOp> ops_;
  std::span<const OpRecord> records_;
  const StageOrder& order_;
  std::vector<Seconds> launched_;                  ///< by op; once somebody has asked
  std::map<std::int32_t, Seconds> stalled_since_;  ///< by op that had to wait for memory
  TimeBreakdown account_;
};

}  // namespace

TimeBreakdown break_down(const TimedProgram& timed, const TimelineIndex& index, int rank,
                         Seconds step_time) {
  return RankAccount(timed, index, rank).run(step_time);
}

}  // namespace tessera
