#include "sim/reliability/failure_source.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr Seconds kDay = Seconds(86'400);

/// `since` and a time behind it; never beyond the longest.
Micros behind(Micros since, Seconds time) {
  return std::min(kLongestTime, since + to_micros(time));
}

}  // namespace

FailureSource::FailureSource(const FailureModel& model, std::span<const RecordedFault> recorded,
                             int nodes, std::uint64_t seed)
    : model_(model), recorded_(recorded), nodes_(nodes) {
  next_.push({});
  for (int cause = 0; cause < static_cast<int>(model.classes.size()); ++cause) {
    streams_.emplace_back(seed, static_cast<std::uint64_t>(cause));
    if (of(cause).per_node_day > 0) draw_first(cause);
  }
  push_recorded();
}

/// Events of nodes that forget their age are one stream for all of them; else each has its own.
void FailureSource::draw_first(int cause) {
  if (is_exponential(cause)) return draw(cause, Micros(0), 0);
  for (int node = 0; node < nodes_; ++node) draw(cause, Micros(0), node);
}

void FailureSource::draw(int cause, Micros since, int node) {
  RandomStream& random = streams_[static_cast<std::size_t>(cause)];
  const Seconds of_node = kDay / of(cause).per_node_day;
  FailureEvent event{.date = {}, .cause = cause, .node = node, .recorded_end = {}};
  if (is_exponential(cause)) {
    event.date = behind(since, random.exponential(of_node / nodes_));
    event.node = static_cast<int>(random.below(nodes_));
  } else {
    event.date = behind(since, random.weibull(of_node, of(cause).shape));
  }
  if (event.date < kLongestTime) next_.push(event);
}

void FailureSource::push_recorded() {
  if (recorded_taken_ == recorded_.size()) return;
  const RecordedFault& fault = recorded_[recorded_taken_];
  next_.push({.date = fault.begin,
              .cause = static_cast<int>(model_.classes.size() + recorded_taken_),
              .node = fault.node,
              .recorded_end = fault.end});
  ++recorded_taken_;
}

FailureEvent FailureSource::take() {
  const FailureEvent event = next_.top();
  next_.pop();
  if (event.cause >= static_cast<int>(model_.classes.size())) {
    push_recorded();
  } else {
    draw(event.cause, event.date, event.node);
  }
  return event;
}

}  // namespace tessera
