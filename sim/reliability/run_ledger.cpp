#include "sim/reliability/run_ledger.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tessera {

RunLedger::RunLedger(const RunPlan& plan, bool with_timeline)
    : plan_(plan), with_timeline_(with_timeline) {
  record_.least_replicas = plan.replicas;
  for (const FailureClass& of : plan.failures.classes)
    record_.causes.push_back(CauseLoss{.cause = of.name});
  for (const RecordedFault& fault : plan.recorded)
    record_.causes.push_back(CauseLoss{.cause = fault.cause});
}

CauseLoss& RunLedger::loss(int cause) {
  return record_.causes[static_cast<std::size_t>(cause)];
}

void RunLedger::enter(Activity activity, int cause) {
  activity_ = activity;
  cause_ = cause;
}

void RunLedger::blame(Activity activity, Micros time) {
  if (cause_ < 0) return;
  if (activity == Activity::detection) loss(cause_).detection += time;
  if (activity == Activity::restart) loss(cause_).restart += time;
  if (activity == Activity::waiting) loss(cause_).waiting += time;
}

void RunLedger::book_training(Micros time, const Speed& speed, std::int64_t times) {
  const auto at = [time](double share) {
    return Micros(
        static_cast<std::int64_t>(std::llround(static_cast<double>(time.value()) * share)));
  };
  const Micros useful = at(speed.all), without_writes = at(speed.without_writes);
  useful_ += useful * times;
  record_.slow += (time - useful) * times;
  record_.beside_writes += (without_writes - useful) * times;
  if (slow_cause_ >= 0) loss(slow_cause_).slow += (time - without_writes) * times;
  now_training_ += time * times;
  if (speed.replicas == plan_.replicas) return;
  record_.fewer += time * times;
  record_.least_replicas = std::min(record_.least_replicas, speed.replicas);
}

void RunLedger::skip(std::int64_t cycles, const Speed& speed) {
  book_training(plan_.interval, speed, cycles);
  record_.checkpoint += plan_.checkpoint * cycles;
  record_.checkpoints += cycles;
  now_ += (plan_.interval + plan_.checkpoint) * cycles;
  checkpoint_at_.fill(now_training_);
  saved_.fill({useful_, now_ - plan_.checkpoint});
}

void RunLedger::advance(Micros now, const Speed& speed) {
  const Micros time = now - now_;
  if (time.value() == 0) return;
  if (activity_ == Activity::training) {
    book_training(time, speed, 1);
  } else {
    Micros* const parts[] = {nullptr, &record_.checkpoint, &record_.detection, &record_.restart,
                             &record_.waiting};
    *parts[static_cast<std::size_t>(activity_)] += time;
    blame(activity_, time);
  }
  if (with_timeline_) {
    auto& spans = record_.timeline;
    if (!spans.empty() && spans.back().activity == activity_ && activity_ != Activity::training) {
      spans.back().end = now;
    } else {
      spans.push_back({now_, now, activity_});
    }
  }
  now_ = now;
}

void RunLedger::count_stop(int cause) {
  ++loss(cause).stops;
  ++record_.stops;
}

void RunLedger::end_checkpoint(CheckpointPlace place, bool written_later) {
  ++record_.checkpoints;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(place); ++i)
    checkpoint_at_[i] = now_training_;
  if (place == CheckpointPlace::drives) saved_[0] = taken_;
  if (place != CheckpointPlace::drives) saved_[1] = taken_;
  if (place == CheckpointPlace::storage) (written_later ? writing_ : saved_.back()) = taken_;
}

void RunLedger::roll_back(int cause, bool drives, bool memory) {
  SavedWork saved = stored();
  const auto prefer = [&saved](const SavedWork& copy) {
    if (copy.useful > saved.useful) saved = copy;
  };
  if (drives && plan_.local_interval.value() > 0) prefer(saved_[0]);
  if (memory && plan_.memory_interval.value() > 0) prefer(saved_[1]);
  go_back(saved, cause);
}

void RunLedger::roll_back_to(SavedWork clean, int cause) {
  if (clean.useful < stored().useful) saved_.back() = clean;
  go_back(stored(), cause);
}

void RunLedger::go_back(const SavedWork& saved, int cause) {
  const Micros lost = useful_ - saved.useful;
  record_.lost += lost;
  loss(cause).lost += lost;
  if (with_timeline_) mark_lost(saved.date);
  useful_ = saved.useful;
  saved_[0] = saved_[1] = saved;
  checkpoint_at_.fill(now_training_);
}

void RunLedger::mark_lost(Micros since) {
  auto& spans = record_.timeline;
  for (auto span = spans.rbegin(); span != spans.rend() && span->begin >= since; ++span)
    if (span->activity == Activity::training) span->activity = Activity::lost;
}

Micros RunLedger::time_until(Micros work, double speed) const {
  if (work <= useful_) return Micros(0);
  const double time = std::ceil(static_cast<double>((work - useful_).value()) / speed);
  return Micros(std::max(std::int64_t{1}, static_cast<std::int64_t>(time)));
}

/// Faults of a record with the same cause count together.
void RunLedger::gather_recorded_causes() {
  const auto modelled = static_cast<std::ptrdiff_t>(plan_.failures.classes.size());
  std::vector<CauseLoss> causes(record_.causes.begin(), record_.causes.begin() + modelled);
  for (auto from = record_.causes.begin() + modelled; from != record_.causes.end(); ++from) {
    auto into = std::find_if(causes.begin() + modelled, causes.end(),
                             [&](const CauseLoss& of) { return of.cause == from->cause; });
    if (into == causes.end()) into = causes.insert(into, CauseLoss{.cause = from->cause});
    into->events += from->events;
    into->stops += from->stops;
    into->lost += from->lost;
    into->slow += from->slow;
    into->detection += from->detection;
    into->restart += from->restart;
    into->waiting += from->waiting;
  }
  record_.causes = std::move(causes);
}

RunRecord RunLedger::finish(Micros now, bool work_done, const NodePool& pool) {
  record_.wall = now;
  record_.useful = useful_;
  record_.work_done = work_done;
  record_.node_time_out = pool.out_time(now);
  record_.node_availability = 1 - record_.node_time_out / (now * std::int64_t{pool.size()});
  gather_recorded_causes();
  return std::move(record_);
}

}  // namespace tessera
