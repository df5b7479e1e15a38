#include <algorithm>

#include "sim/remat/stage_plan.h"

namespace tessera::remat {

CopyCalendar::CopyCalendar(const Graph& graph) : graph_(graph), clock_(graph.ops() + 2) {}

void CopyCalendar::stage_clock(const StagePlan& plan) {
  Nanoseconds now = 0;
  for (Stage t = 0; t <= graph_.ops(); ++t) {
    clock_[t] = now;
    for (std::int32_t k = plan.again_begin[t]; k < plan.again_begin[t + 1]; ++k)
      now += graph_.time(plan.again[k]);
    if (t < graph_.ops()) now += graph_.first_time(t);
  }
  clock_[graph_.ops() + 1] = now;
}

bool CopyCalendar::read_by_last_op(TensorId tensor, Stage stage) const {
  if (stage >= graph_.ops() || graph_.producer(tensor) == stage) return true;
  const auto inputs = graph_.inputs(stage);
  return std::binary_search(inputs.begin(), inputs.end(), tensor);
}

/// In the order of last readers, each as early as it can.
void CopyCalendar::fit_out(StagePlan& plan, const HostLink& link) {
  std::sort(copies_.begin(), copies_.end(), [](const Copy& a, const Copy& b) {
    return a.key != b.key ? a.key < b.key : a.tensor < b.tensor;
  });
  Nanoseconds free = 0;
  for (const Copy& copy : copies_) {
    Run& run = plan.runs[copy.run];
    const ByteCount bytes = graph_.size(copy.tensor);
    free = std::max(free, clock_[run.first + 1]) + link.copy_time(bytes);
    // The next run of this tensor is copied in: the hold must end before.
    const std::int32_t next = copy.run + 1;
    const bool has_next = next < plan.run_begin[copy.tensor] + plan.run_count[copy.tensor];
    const Stage limit = has_next ? plan.runs[next].first - 1 : graph_.ops();
    if (clock_[run.last + 1] >= free) continue;
    const bool within = read_by_last_op(copy.tensor, run.last);
    if (!within && room_[run.last] < bytes) continue;
    Stage held = run.last;
    while (held < limit && clock_[held + 1] < free && room_[held + 1] >= bytes)
      room_[++held] -= bytes;
    if (held > run.last && !within) room_[run.last] -= bytes;
    run.hold_to = held;
  }
}

/// Copies in that are needed first get the memory; the link takes each as late as it can.
void CopyCalendar::fit_in(StagePlan& plan, const HostLink& link) {
  std::sort(copies_.begin(), copies_.end(), [](const Copy& a, const Copy& b) {
    return a.key != b.key ? a.key < b.key : a.tensor < b.tensor;
  });
  Nanoseconds start = clock_.back();
  for (auto copy = copies_.rbegin(); copy != copies_.rend(); ++copy) {
    Run& run = plan.runs[copy->run];
    start = std::min(start, clock_[run.first]) - link.copy_time(graph_.size(copy->tensor));
    const auto after = std::upper_bound(clock_.begin(), clock_.begin() + run.first + 1, start);
    run.copy_from = std::max<Stage>(0, static_cast<Stage>(after - clock_.begin()) - 1);
  }
  for (const Copy& copy : copies_) {
    Run& run = plan.runs[copy.run];
    const ByteCount bytes = graph_.size(copy.tensor);
    const Run& previous = plan.runs[copy.run - 1];
    const Stage earliest = std::max(
        run.copy_from,
        1 + (previous.to_host ? std::max(previous.last, previous.hold_to) : previous.last));
    Stage from = run.first;
    while (from > earliest && room_[from - 1] >= bytes) room_[--from] -= bytes;
    run.copy_from = from;
  }
}

void CopyCalendar::fit(StagePlan& plan, const HostLink& link, ByteCount budget,
                       const std::vector<ByteCount>& stage_peaks) {
  stage_clock(plan);
  room_.resize(stage_peaks.size());
  for (std::size_t t = 0; t < room_.size(); ++t) room_[t] = budget - stage_peaks[t];
  for (const bool in : {false, true}) {
    copies_.clear();
    for (TensorId q = 0; q < graph_.tensors(); ++q) {
      for (std::int32_t k = plan.run_begin[q]; k < plan.run_begin[q] + plan.run_count[q]; ++k) {
        const Run& run = plan.runs[k];
        if (in && run.origin == Origin::copied_in) copies_.push_back({k, q, run.first});
        if (!in && run.to_host) copies_.push_back({k, q, run.last});
      }
    }
    in ? fit_in(plan, link) : fit_out(plan, link);
  }
}

}  // namespace tessera::remat
