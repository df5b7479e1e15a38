#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "hw/units/deadline.h"
#include "sim/remat/schedule.h"

namespace tessera::remat {
namespace {

constexpr Nanoseconds kNever = -1;

Nanoseconds rounded(double nanoseconds) {
  return static_cast<Nanoseconds>(std::ceil(nanoseconds));
}

/// Copies of one direction, or transfers, in their order, that may not have ended yet.
class PendingFlows {
 public:
  /// `id`: of the tensor that is copied, of the operator that launched the transfer.
  void add(std::int32_t id, Nanoseconds end) { flows_.push_back({id, end}); }

  /// From `begin` on they go at `pace`, for at most `lasting`. `dates`: by id, when the flow ends.
  /// Returns when the last one does, 0 where none is pending.
  Nanoseconds slow_down(Nanoseconds begin, Nanoseconds lasting, double pace,
                        std::vector<Nanoseconds>& dates) {
    while (first_ < flows_.size() && flows_[first_].end <= begin) ++first_;
    const auto most = static_cast<double>(lasting) * (1 - pace);
    for (std::size_t i = first_; i < flows_.size(); ++i) {
      Flow& flow = flows_[i];
      Nanoseconds& date = dates[flow.id];
      const bool is_last = date == flow.end;  // else the tensor was dropped and copied once more
      flow.end += rounded(std::min(static_cast<double>(flow.end - begin) * (1 / pace - 1), most));
      if (is_last) date = flow.end;
    }
    return first_ < flows_.size() ? flows_.back().end : 0;
  }

 private:
  struct Flow {
    std::int32_t id;
    Nanoseconds end;
  };
  std::vector<Flow> flows_;
  std::size_t first_ = 0;
};

class Replay {
 public:
  Replay(const Graph& graph, const std::optional<HostLink>& link,
         std::vector<ByteCount>* stage_peaks)
      : graph_(graph),
        link_(link),
        stage_peaks_(stage_peaks),
        ready_(graph.tensors(), kNever),
        on_host_(graph.tensors(), kNever),
        transferred_(graph.has_transfers() ? graph.ops() : 0, kNever),
        ran_(graph.ops(), 0) {
    if (stage_peaks_) stage_peaks_->assign(graph.ops() + 1, graph.static_bytes());
    bytes_ = result_.peak = graph.static_bytes();
  }

  ReplayResult run(const Schedule& schedule) {
    for (step_ = 0; step_ < schedule.size(); ++step_) {
      poll_deadline();
      perform(schedule[step_]);
    }
    for (OpId op = 0; op < graph_.ops(); ++op)
      if (!ran_[op]) fail("never runs operator", op);
    for (const TensorId q : graph_.kept_tensors()) {
      if (ready_[q] == kNever) fail("loses kept tensor", q);
      clock_ = std::max(clock_, ready_[q]);
    }
    await(transfers_free_);
    result_.time = clock_;
    return result_;
  }

 private:
  [[noreturn]] void fail(const char* what, std::int32_t id) const {
    throw std::logic_error("schedule step " + std::to_string(step_) + " " + what + " " +
                           std::to_string(id));
  }

  void perform(const Step& step) {
    switch (step.action) {
      case Action::compute:
        return compute(step.id);
      case Action::drop:
        return drop(step.id);
      case Action::copy_out:
        return copy_out(step.id);
      case Action::release:
        return release(step.id);
      case Action::copy_in:
        return copy_in(step.id);
    }
  }

  void note_peak(ByteCount bytes) {
    if (stage_ < graph_.done()) return;
    if (stage_peaks_) (*stage_peaks_)[stage_] = std::max((*stage_peaks_)[stage_], bytes);
    if (bytes <= result_.peak) return;
    result_.peak = bytes;
    result_.peak_step = step_;
  }

  void compute(OpId op) {
    Nanoseconds start = clock_;
    for (const TensorId q : graph_.inputs(op)) {
      if (ready_[q] == kNever) fail("misses input", q);
      start = std::max(start, ready_[q]);
    }
    stall(start - clock_);
    clock_ = start;
    const bool launches = graph_.has_transfers() && run_beside(op);
    clock_ += ran_[op] ? graph_.time(op) : graph_.first_time(op);
    if (link_ && graph_.uses_link() && !launches) share_link(graph_.link_use(op), start);
    ByteCount twice = 0;  // outputs that are there already, for as long as the operator runs
    for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
      if (ready_[q] != kNever) {
        twice += graph_.size(q);
        continue;
      }
      bytes_ += graph_.size(q);
      ready_[q] = clock_;
    }
    note_peak(bytes_ + twice + graph_.workspace(op));
    if (ran_[op]) {
      result_.recompute += graph_.time(op);
      return;
    }
    ran_[op] = 1;
    if (op != stage_) fail("runs out of program order", op);
    ++stage_;
  }

  void stall(Nanoseconds time) {
    result_.stall += time;
    if (stage_ < graph_.first_backward()) result_.forward_stall += time;
  }

  void await(Nanoseconds end) {
    const Nanoseconds time = std::max<Nanoseconds>(0, end - clock_);
    clock_ += time;
    result_.awaited += time;
    if (stage_ < graph_.first_backward()) result_.forward_awaited += time;
  }

  /// Awaits and launches what `op` does, once; whether it launches a transfer.
  bool run_beside(OpId op) {
    const Transfer& transfer = graph_.transfer(op);
    if (ran_[op]) return transfer.time > 0;
    if (transfer.awaits >= 0) await(transferred_[transfer.awaits]);
    if (transfer.time == 0) return false;
    const Nanoseconds begin = std::max(clock_, transfers_free_);
    beside_ = link_ && graph_.uses_link() ? graph_.link_use(op) : LinkUse();
    transfers_free_ = begin + transfer.time + slower_beside_copies(beside_, begin);
    transferred_[op] = transfers_free_;
    transfers_.add(op, transfers_free_);
    return true;
  }

  /// The operator that began at `start` and ends now, and copies that run beside it.
  void share_link(const LinkUse& use, Nanoseconds start) {
    const Nanoseconds begin = std::max(start, clock_ - use.time);
    const Nanoseconds longer =
        std::max<Nanoseconds>(0, slower_beside_copies(use, begin) - use.slack);
    stall(longer);
    clock_ += longer;
  }

  /// By how much what begins then lasts longer beside copies that are queued, which do too.
  Nanoseconds slower_beside_copies(const LinkUse& use, Nanoseconds begin) {
    const Nanoseconds copies = std::max(out_free_, in_free_) - begin;
    if (use.time == 0 || copies <= 0) return 0;
    const double together = static_cast<double>(copies) / use.pace_of_copies;
    const auto alone = static_cast<double>(use.time);
    const Nanoseconds lasting =
        rounded(std::min(alone / use.pace, alone + together * (1 - use.pace)));
    const Nanoseconds out = out_.slow_down(begin, lasting, use.pace_of_copies, on_host_);
    const Nanoseconds in = in_.slow_down(begin, lasting, use.pace_of_copies, ready_);
    out_free_ = std::max(out_free_, link_->full_duplex ? out : std::max(out, in));
    in_free_ = std::max(in_free_, link_->full_duplex ? in : std::max(out, in));
    return lasting - use.time;
  }

  /// When a copy ends that begins at `start`, beside transfers that are queued; those last longer
  /// from when no copy of the other direction, which is done at `other`, makes them.
  Nanoseconds end_of_copy(TensorId q, Nanoseconds start, Nanoseconds other) {
    const Nanoseconds time = link_->copy_time(graph_.size(q));
    if (transfers_free_ <= start || beside_.time == 0) return start + time;
    const double together = static_cast<double>(time) / beside_.pace_of_copies;
    const Nanoseconds begin = std::max(start, other);
    const Nanoseconds last =
        transfers_.slow_down(begin, rounded(together), beside_.pace, transferred_);
    transfers_free_ = std::max(transfers_free_, last);
    const double beside = std::min(together, static_cast<double>(transfers_free_ - start));
    return start + time + rounded(beside * (1 - beside_.pace_of_copies));
  }

  void drop(TensorId q) {
    if (ready_[q] == kNever) fail("drops what is not there:", q);
    if (ready_[q] > clock_) fail("drops a tensor that is being copied in:", q);
    ready_[q] = kNever;
    bytes_ -= graph_.size(q);
  }

  void copy_out(TensorId q) {
    if (!link_) fail("copies without a link:", q);
    if (ready_[q] == kNever) fail("copies what is not there:", q);
    if (on_host_[q] != kNever) return;
    const Nanoseconds start = std::max({out_free_, clock_, ready_[q]});
    out_free_ = on_host_[q] = end_of_copy(q, start, in_free_);
    if (!link_->full_duplex) in_free_ = out_free_;
    if (graph_.uses_link()) out_.add(q, out_free_);
    result_.host_peak += graph_.size(q);
    result_.copied += graph_.size(q);
  }

  void release(TensorId q) {
    if (ready_[q] == kNever || on_host_[q] == kNever) fail("releases what has no copy:", q);
    const Nanoseconds end = std::max({clock_, on_host_[q], ready_[q]});
    stall(end - clock_);
    clock_ = end;
    ready_[q] = kNever;
    bytes_ -= graph_.size(q);
  }

  void copy_in(TensorId q) {
    if (on_host_[q] == kNever) fail("copies back what has no copy:", q);
    if (ready_[q] != kNever) fail("copies back what is there:", q);
    const Nanoseconds start = std::max({in_free_, clock_, on_host_[q]});
    in_free_ = ready_[q] = end_of_copy(q, start, out_free_);
    if (!link_->full_duplex) out_free_ = in_free_;
    if (graph_.uses_link()) in_.add(q, in_free_);
    bytes_ += graph_.size(q);
    result_.copied += graph_.size(q);
    note_peak(bytes_);
  }

  const Graph& graph_;
  const std::optional<HostLink>& link_;
  std::vector<ByteCount>* stage_peaks_;
  std::vector<Nanoseconds> ready_, on_host_;
  std::vector<Nanoseconds> transferred_;  ///< by operator that launched a transfer: when it ends
  std::vector<std::uint8_t> ran_;
  OpId stage_ = 0;
  std::size_t step_ = 0;
  Nanoseconds clock_ = 0, out_free_ = 0, in_free_ = 0;
  PendingFlows out_, in_;  ///< where operators take the link too
  PendingFlows transfers_;
  Nanoseconds transfers_free_ = 0;
  LinkUse beside_;  ///< of the last transfer
  ByteCount bytes_ = 0;
  ReplayResult result_;
};

}  // namespace

Nanoseconds HostLink::copy_time(ByteCount bytes) const {
  return latency + static_cast<Nanoseconds>(std::ceil(static_cast<double>(bytes) / bytes_per_ns));
}

ReplayResult replay(const Graph& graph, const Schedule& schedule,
                    const std::optional<HostLink>& link, std::vector<ByteCount>* stage_peaks) {
  return Replay(graph, link, stage_peaks).run(schedule);
}

}  // namespace tessera::remat
