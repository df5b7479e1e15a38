#include <algorithm>

#include "sim/engine/memory/tensor_keeper.h"
#include "sim/remat/tessera/rest_planner.h"

namespace tessera {
namespace {

/// The way to host memory for a plan: as shared as the cluster has it, or as slow as copies were.
std::optional<remat::HostLink> link_of(const MemoryHost& host, const TensorStore& store) {
  if (!host.limit().swap || host.limit().links.empty()) return std::nullopt;
  remat::HostLink link = host.limit().links[static_cast<std::size_t>(host.program.stage)];
  Bytes sample;  // the largest, whose latency counts least
  for (const std::int32_t tensor : store.here()) sample = std::max(sample, store.bytes(tensor));
  if (sample == Bytes(0)) return link;
  for (const CopyWay way : {CopyWay::out, CopyWay::in}) {
    const double nanoseconds = store.lanes().seconds(way, sample) * 1e9;
    link.bytes_per_ns =
        std::min(link.bytes_per_ns, static_cast<double>(sample.value()) / nanoseconds);
  }
  return link;
}

/// A stage of a pipeline waits for others, of which the graph knows nothing: what runs again in
/// every micro-batch is hidden there, what runs again in a few may not be. Prices spread it.
remat::Schedule schedule_of(const remat::Graph& rest, const remat::PlanRequest& request,
                            const MemoryHost& host) {
  const bool waits = host.timed.program.layout.pipeline > 1;
  return (waits ? remat::plan_by_prices(rest, request) : remat::plan_rest(rest, request)).schedule;
}

}  // namespace

std::int32_t TensorKeeper::first_in_sight() const {
  std::int32_t first = host_.ops();
  Bytes level = static_, lacking;
  for (std::int32_t op = 0; op < host_.ops(); ++op) {
    const Bytes over = level + host_.taken_by(op) - host_.limit().bytes;
    if (over > Bytes(0)) first = std::min(first, op);
    lacking = std::max(lacking, over);
    level += host_.net_of(op);
  }
  if (lacking == Bytes(0) || !host_.limit().swap || host_.limit().links.empty()) return first;
  const remat::HostLink& link = host_.limit().links[static_cast<std::size_t>(host_.program.stage)];
  const double copies = static_cast<double>(link.copy_time(lacking.value())) * 1e-9;
  std::int32_t op = 0;
  while (op < first && horizon_.between(op, first).value() > copies) ++op;
  return op;
}

bool TensorKeeper::wants_plan(std::int32_t op) {
  constexpr int kMostPlans = 8;
  constexpr std::int32_t kOpsBetween = 32;
  if (host_.limit().policy != PressurePolicy::planner) return false;
  if (in_sight_ == kNone) in_sight_ = first_in_sight();
  if (plans_ == 0) return op >= in_sight_ || host_.taken_by(op) > room();
  return departed_ && plans_ < kMostPlans && op >= planned_at_ + kOpsBetween;
}

void TensorKeeper::plan_from(std::int32_t op) {
  ++plans_;
  planned_at_ = op;
  departed_ = false;
  const MemoryNow now{
      .op = op,
      .besides = running_ == kNone ? host_.ledger.used() - store_.held()
                                   : static_ + uses_.besides_before(op),
      .is_live =
          [&](std::int32_t tensor) { return store_.is_live(tensor) || store_.is_here(tensor); },
      .is_here = [&](std::int32_t tensor) { return store_.is_here(tensor); }};
  const RestOfStep rest = rest_of_step(host_, lives_, uses_, now);
  const remat::PlanRequest request{.budget = host_.limit().bytes.value(),
                                   .link = link_of(host_, store_),
                                   .host_bytes = host_.limit().host_bytes.value(),
                                   .effort = remat::Effort::fast};
  std::vector<PlanStep> steps = steps_of(rest, schedule_of(rest.graph, request, host_));
  if (steps.empty() || !brings_back(rest, steps)) return;
  steps_ = std::move(steps);
  next_step_ = 0;
  std::ranges::fill(last_return_, 0);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (steps_[i].action == remat::Action::copy_in)
      last_return_[static_cast<std::size_t>(steps_[i].id)] = i;
  early_.clear();
  spare_.clear();
  std::ranges::fill(planned_, 0);
  for (const std::int32_t tensor : rest.tensors) planned_[static_cast<std::size_t>(tensor)] = 1;
}

bool TensorKeeper::brings_back(const RestOfStep& rest, const std::vector<PlanStep>& steps) const {
  std::vector<char> again(static_cast<std::size_t>(uses_.ops()), 0);
  for (const PlanStep& step : steps)
    if (step.action == remat::Action::compute && step.again)
      again[static_cast<std::size_t>(step.id)] = 1;
  return std::ranges::all_of(rest.tensors, [&](std::int32_t tensor) {
    const bool is_gone = store_.is_live(tensor) && !store_.is_here(tensor) &&
                         store_.host_copy(tensor) != TensorStore::HostCopy::complete;
    return !is_gone || again[static_cast<std::size_t>(uses_.maker(tensor))] != 0;
  });
}

bool TensorKeeper::needs_copy(std::int32_t tensor) const {
  return (store_.has_use(tensor) || returns_by_plan(tensor)) &&
         !uses_.can_rerun(uses_.maker(tensor)) &&
         store_.host_copy(tensor) != TensorStore::HostCopy::complete;
}

bool TensorKeeper::perform_at_once(const PlanStep& step) {
  const std::int32_t tensor = step.id;
  switch (step.action) {
    case remat::Action::compute:
    case remat::Action::copy_in:
      return false;
    case remat::Action::drop:
      if (store_.is_arriving(tensor) && !store_.has_use(tensor)) spare_.push_back(tensor);
      if (!store_.is_ready(tensor) || store_.is_leaving(tensor)) return true;
      needs_copy(tensor) ? store_.leave(tensor) : store_.drop(tensor);
      return true;
    case remat::Action::copy_out:
      if (store_.is_ready(tensor) && store_.host_copy(tensor) == TensorStore::HostCopy::none)
        store_.copy_out(tensor);
      return true;
    case remat::Action::release:
      if (store_.is_ready(tensor) && !store_.is_leaving(tensor)) store_.leave(tensor);
      return true;
  }
  return true;
}

bool TensorKeeper::follow_plan(std::int32_t op) {
  for (; next_step_ < steps_.size(); ++next_step_) {
    const PlanStep& step = steps_[next_step_];
    if (perform_at_once(step)) continue;
    if (step.action == remat::Action::copy_in) {
      if (!store_.is_here(step.id)) early_.push_back(step.id);
      continue;
    }
    if (!step.again) break;
    copy_back_early(step.id);
    if (!run_plan_again(step.id)) return false;
  }
  copy_back_early(op);
  return true;
}

void TensorKeeper::follow_plan_past(std::int32_t op) {
  for (; next_step_ < steps_.size(); ++next_step_) {
    const PlanStep& step = steps_[next_step_];
    if (perform_at_once(step)) continue;
    if (step.action == remat::Action::copy_in) {
      if (!store_.is_here(step.id)) early_.push_back(step.id);
    } else if (step.again) {
      departed_ = true;  // a rescue needed the room
    } else {
      if (step.id == op) ++next_step_;
      return;
    }
  }
}

/// True: all that the op makes is there.
bool TensorKeeper::run_plan_again(std::int32_t made_by) {
  const bool is_there = std::ranges::all_of(uses_.made_by(made_by), [&](std::int32_t tensor) {
    return planned_[static_cast<std::size_t>(tensor)] == 0 || store_.is_here(tensor) ||
           store_.host_copy(tensor) == TensorStore::HostCopy::complete;
  });
  if (is_there) return true;
  protected_.clear();
  prepare_rerun(made_by, made_by);
  of_plan_ = rerun_ == made_by;
  return false;
}

/// In the plan's order; behind the room that `op` takes.
void TensorKeeper::copy_back_early(std::int32_t op) {
  while (!early_.empty()) {
    const std::int32_t tensor = early_.front();
    // Without a use it serves what the plan makes again.
    const bool can =
        !store_.is_here(tensor) &&
        (store_.has_use(tensor) || store_.host_copy(tensor) != TensorStore::HostCopy::none);
    if (can && store_.host_copy(tensor) != TensorStore::HostCopy::complete) return;
    if (can && store_.bytes(tensor) + host_.taken_by(op) > room()) return;
    if (can) come_back(tensor, true);
    early_.pop_front();
  }
}

/// What ops need that begin within the time of its copy comes back, as far as there is room.
void TensorKeeper::look_ahead(std::int32_t op) {
  constexpr std::int32_t kFarthest = 512;
  Bytes room_left = room() - host_.taken_by(op);  // which it has not taken yet
  const std::int32_t end = std::min(host_.ops(), op + kFarthest);
  for (std::int32_t next = op + 1; next < end; ++next) {
    if (!uses_.computes(next)) continue;
    room_left = std::min(room_left, room() - host_.taken_by(next));
    for (const std::int32_t tensor : uses_.read_by(next)) {
      const bool away =
          !store_.is_here(tensor) && store_.host_copy(tensor) == TensorStore::HostCopy::complete;
      if (!away) continue;
      const Bytes bytes = store_.bytes(tensor);
      const double copy = store_.lanes().seconds(CopyWay::in, bytes);
      if (horizon_.between(op, next).value() > 2 * copy || bytes > room_left) return;
      room_left -= bytes;
      come_back(tensor);
    }
  }
}

}  // namespace tessera
