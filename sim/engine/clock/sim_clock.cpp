#include "sim/engine/clock/sim_clock.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

/// Children of an entry of the heap: four lie in two cache lines, and the heap is half as deep.
constexpr std::size_t kChildren = 4;

/// Actions between two looks at the wall clock.
constexpr std::uint64_t kActionsPerLook = 4096;

}  // namespace

SimClock::Posted* SimClock::post(Action&& action) {
  if (spare_ == nullptr) return &posted_.emplace_back(Posted{std::move(action), nullptr});
  Posted* const posted = spare_;
  spare_ = std::exchange(posted->next, nullptr);
  posted->action = std::move(action);
  return posted;
}

void SimClock::at(Seconds date, Action&& action) {
  if (stopped_) return;
  const double when = std::max(date, now_).value();
  Posted* const posted = post(std::move(action));
  for (Open& open : open_) {
    if (open.date != when) continue;
    std::exchange(open.last, posted)->next = posted;
    return;
  }
  const Instant instant{when, next_sequence_++, posted};
  open_[oldest_open_] = {when, instant.sequence, posted};
  oldest_open_ = (oldest_open_ + 1) % open_.size();
  push(instant);
  arm();
}

bool SimClock::ahead() const {
  return simgrid_ == nullptr || now_ > simgrid_->now();
}

// As an instant of its own, because the one that runs is over before SimGrid's clock moves.
void SimClock::in_step(Action&& action) {
  if (stopped_) return;
  occupy();
  push({now_.value(), next_sequence_++, post([this, action = std::move(action)]() mutable {
          release();
          action();
        })});
  arm();
}

void SimClock::push(const Instant& entry) {
  std::size_t at = heap_.size();
  heap_.push_back(entry);
  while (at > 0) {
    const std::size_t parent = (at - 1) / kChildren;
    if (!entry.before(heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = entry;
}

void SimClock::pop() {
  const Instant last = heap_.back();
  heap_.pop_back();
  const std::size_t size = heap_.size();
  if (size == 0) return;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = at * kChildren + 1;
    if (begin >= size) break;
    std::size_t first = begin;
    const std::size_t end = std::min(begin + kChildren, size);
    for (std::size_t child = begin + 1; child < end; ++child) {
      if (heap_[child].before(heap_[first])) first = child;
    }
    if (!heap_[first].before(last)) break;
    heap_[at] = heap_[first];
    at = first;
  }
  heap_[at] = last;
}

void SimClock::catch_up() {
  now_ = std::max(now_, simgrid_->now());
}

void SimClock::limit_wall_time(Seconds limit, Action when_over) {
  const std::chrono::duration<double> duration(limit.value());
  wall_limit_ = std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
  when_over_ = std::move(when_over);
}

void SimClock::stop() {
  stopped_ = true;
  heap_.clear();
}

void SimClock::look_at_wall_clock() {
  if (!when_over_ || std::chrono::steady_clock::now() < wall_limit_) return;
  std::exchange(when_over_, nullptr)();
}

// A timer that an earlier one has overtaken still fires; `fire` ignores it.
void SimClock::arm() {
  if (simgrid_ == nullptr || heap_.empty() || Seconds(heap_.front().date) >= armed_for_) return;
  armed_for_ = Seconds(heap_.front().date);
  simgrid_->at(armed_for_, [this, armed = armed_for_] { fire(armed); });
}

void SimClock::run(const Instant& instant) {
  now_ = Seconds(instant.date);
  for (Posted* posted = instant.first; posted != nullptr && !stopped_;) {
    if (++events_ % kActionsPerLook == 0) look_at_wall_clock();
    // Saves 7 % of the CPU time of 1,024 ranks that take turns.
    if (posted->next != nullptr) posted->next->action.prefetch();
    posted->action();
    posted->action = nullptr;
    // Only now: the action may have posted others for this instant.
    Posted* const next = posted->next;
    posted->next = std::exchange(spare_, posted);
    posted = next;
  }
  for (Open& open : open_) {
    if (open.date == instant.date && open.sequence == instant.sequence) open.date = -1;
  }
}

void SimClock::run_until(Seconds last) {
  while (!heap_.empty()) {
    const Instant instant = heap_.front();
    const Seconds date(instant.date);
    if (date > last && !may_come_before_simgrid(date)) break;
    pop();
    run(instant);
  }
}

void SimClock::run_alone() {
  constexpr Seconds kBeforeAll{-1};
  run_until(kBeforeAll);
}

void SimClock::join_simgrid(OuterClock& simgrid) {
  simgrid_ = &simgrid;
  arm();
}

void SimClock::fire(Seconds armed_for) {
  if (armed_for != armed_for_) return;
  run_until(armed_for);
  armed_for_ = kNever;
  arm();
}

}  // namespace tessera
