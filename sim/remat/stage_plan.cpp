#include "sim/remat/stage_plan.h"

#include <algorithm>
#include <utility>

namespace tessera::remat {

ScheduleWriter::ScheduleWriter(const Graph& graph)
    : graph_(graph), cursor_(graph.tensors()), seen_(graph.tensors()) {}

void ScheduleWriter::bucket_copies(const StagePlan& plan) {
  ins_.clear();
  outs_.clear();
  releases_.clear();
  next_in_ = next_out_ = next_release_ = 0;
  for (TensorId q = 0; q < graph_.tensors(); ++q) {
    for (std::int32_t k = 0; k < plan.run_count[q]; ++k) {
      const Run& run = plan.runs[plan.run_begin[q] + k];
      if (run.origin == Origin::copied_in) ins_.push_back({run.copy_from, run.first, q});
      if (!run.to_host) continue;
      outs_.push_back({run.first, run.last, q});
      if (run.hold_to > run.last) releases_.push_back({run.hold_to, run.last, q});
    }
  }
  const auto earlier = [](const Event& a, const Event& b) {
    if (a.stage != b.stage) return a.stage < b.stage;
    return a.order != b.order ? a.order < b.order : a.tensor < b.tensor;
  };
  std::sort(ins_.begin(), ins_.end(), earlier);
  std::sort(releases_.begin(), releases_.end(), earlier);
  // First to the host is what is needed last here; each queued once it and all before it exist.
  std::sort(outs_.begin(), outs_.end(), [](const Event& a, const Event& b) {
    return a.order != b.order ? a.order < b.order : a.tensor < b.tensor;
  });
  for (std::size_t i = 1; i < outs_.size(); ++i)
    outs_[i].stage = std::max(outs_[i].stage, outs_[i - 1].stage);
  if (!outs_.empty()) out_queued_.assign(graph_.tensors(), 0);
}

inline const Run* ScheduleWriter::run_at(const StagePlan& plan, TensorId tensor, Stage t) {
  std::int32_t& cursor = cursor_[tensor];
  const std::int32_t count = plan.run_count[tensor];
  const Run* runs = plan.runs.data() + plan.run_begin[tensor];
  while (cursor < count && runs[cursor].last < t) ++cursor;
  return cursor < count && runs[cursor].first <= t ? runs + cursor : nullptr;
}

bool ScheduleWriter::in_window(const StagePlan& plan, TensorId tensor, Stage t) const {
  const std::int32_t next = cursor_[tensor];
  const Run* runs = plan.runs.data() + plan.run_begin[tensor];
  if (next > 0 && runs[next - 1].to_host && runs[next - 1].hold_to >= t) return true;
  return next < plan.run_count[tensor] && runs[next].origin == Origin::copied_in &&
         runs[next].copy_from <= t;
}

void ScheduleWriter::find_last_readers(const StagePlan& plan, Stage t) {
  ends_.clear();
  const bool alone = stage_ops_.size() == 1;  // then nobody else is seen
  for (auto k = static_cast<std::int32_t>(stage_ops_.size()) - 1; k >= 0; --k) {
    const OpId op = stage_ops_[k];
    for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
      if (!alone && seen_[q] == t) continue;
      const Run* run = run_at(plan, q, t);
      const bool ends_here = run ? run->first == t && run->last == t : !in_window(plan, q, t);
      const bool copied = run && run->origin == Origin::copied_in;
      if (ends_here && !copied) ends_.push_back({k, q});
    }
    for (const TensorId q : graph_.inputs(op)) {
      if (!alone && std::exchange(seen_[q], t) == t) continue;
      const Run* run = run_at(plan, q, t);
      if (run && run->last == t) ends_.push_back({k, q});
    }
  }
}

void ScheduleWriter::end_run(const Run& run, TensorId tensor, Schedule& schedule) {
  if (!run.to_host) {
    schedule.push_back({Action::drop, tensor});
    return;
  }
  if (run.hold_to > run.last) return;
  if (!out_queued_[tensor]) {
    out_queued_[tensor] = 1;
    schedule.push_back({Action::copy_out, tensor});
  }
  schedule.push_back({Action::release, tensor});
}

void ScheduleWriter::stage(const StagePlan& plan, Stage t, Schedule& schedule) {
  for (; next_in_ < ins_.size() && ins_[next_in_].stage == t; ++next_in_)
    schedule.push_back({Action::copy_in, ins_[next_in_].tensor});
  stage_ops_.assign(plan.again.begin() + plan.again_begin[t],
                    plan.again.begin() + plan.again_begin[t + 1]);
  if (t < graph_.ops()) stage_ops_.push_back(t);
  find_last_readers(plan, t);
  auto end = ends_.rbegin();
  for (std::int32_t k = 0; k < static_cast<std::int32_t>(stage_ops_.size()); ++k) {
    schedule.push_back({Action::compute, stage_ops_[k]});
    for (; end != ends_.rend() && end->position == k; ++end) {
      const Run* run = run_at(plan, end->tensor, t);
      if (t == graph_.ops() && graph_.kept(end->tensor) && run) continue;
      end_run(run ? *run : Run{}, end->tensor, schedule);
    }
  }
  for (; next_out_ < outs_.size() && outs_[next_out_].stage <= t; ++next_out_) {
    const TensorId q = outs_[next_out_].tensor;
    if (!out_queued_[q]) schedule.push_back({Action::copy_out, q});
    out_queued_[q] = 1;
  }
  for (; next_release_ < releases_.size() && releases_[next_release_].stage == t; ++next_release_)
    schedule.push_back({Action::release, releases_[next_release_].tensor});
}

void ScheduleWriter::write(const StagePlan& plan, Schedule& schedule) {
  schedule.clear();
  std::fill(cursor_.begin(), cursor_.end(), 0);
  std::fill(seen_.begin(), seen_.end(), -1);
  bucket_copies(plan);
  for (Stage t = 0; t <= graph_.ops(); ++t) stage(plan, t, schedule);
}

}  // namespace tessera::remat
