#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "hw/units/deadline.h"
#include "sim/remat/schedule.h"

namespace tessera::remat {
namespace {

constexpr Nanoseconds kNever = -1;

class Replay {
 public:
  Replay(const Graph& graph, const std::optional<HostLink>& link,
         std::vector<ByteCount>* stage_peaks)
      : graph_(graph),
        link_(link),
        stage_peaks_(stage_peaks),
        ready_(graph.tensors(), kNever),
        on_host_(graph.tensors(), kNever),
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
    result_.stall += start - clock_;
    clock_ = start + (ran_[op] ? graph_.time(op) : graph_.first_time(op));
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
    out_free_ = on_host_[q] = start + link_->copy_time(graph_.size(q));
    if (!link_->full_duplex) in_free_ = out_free_;
    result_.host_peak += graph_.size(q);
    result_.copied += graph_.size(q);
  }

  void release(TensorId q) {
    if (ready_[q] == kNever || on_host_[q] == kNever) fail("releases what has no copy:", q);
    const Nanoseconds end = std::max({clock_, on_host_[q], ready_[q]});
    result_.stall += end - clock_;
    clock_ = end;
    ready_[q] = kNever;
    bytes_ -= graph_.size(q);
  }

  void copy_in(TensorId q) {
    if (on_host_[q] == kNever) fail("copies back what has no copy:", q);
    if (ready_[q] != kNever) fail("copies back what is there:", q);
    const Nanoseconds start = std::max({in_free_, clock_, on_host_[q]});
    in_free_ = ready_[q] = start + link_->copy_time(graph_.size(q));
    if (!link_->full_duplex) out_free_ = in_free_;
    bytes_ += graph_.size(q);
    result_.copied += graph_.size(q);
    note_peak(bytes_);
  }

  const Graph& graph_;
  const std::optional<HostLink>& link_;
  std::vector<ByteCount>* stage_peaks_;
  std::vector<Nanoseconds> ready_, on_host_;
  std::vector<std::uint8_t> ran_;
  OpId stage_ = 0;
  std::size_t step_ = 0;
  Nanoseconds clock_ = 0, out_free_ = 0, in_free_ = 0;
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
