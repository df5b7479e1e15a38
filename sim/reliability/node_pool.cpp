#include "sim/reliability/node_pool.h"

#include <algorithm>
#include <cstddef>

namespace tessera {

NodePool::NodePool(int nodes, int in_job, int crews)
    : places_(static_cast<std::size_t>(nodes), Place::job),
      out_until_(static_cast<std::size_t>(nodes)),
      in_job_(in_job),
      crews_(crews) {
  for (int node = nodes - 1; node >= in_job; --node) {
    places_[static_cast<std::size_t>(node)] = Place::idle;
    idle_.push_back(node);
  }
}

void NodePool::leave(int node, Micros now) {
  if (place(node) == Place::job) --in_job_;
  if (place(node) == Place::idle) std::erase(idle_, node);
  places_[static_cast<std::size_t>(node)] = Place::out;
  ++out_;
  out_time_ -= now.value();
}

void NodePool::start_repair(int node, Micros now, Micros repair) {
  ++busy_crews_;
  const Micros end = std::min(kLongestTime, now + repair);
  out_until_[static_cast<std::size_t>(node)] = end;
  repairs_.emplace(end, node);
}

void NodePool::take_out(int node, Micros now, Micros repair) {
  if (is_out(node)) return;
  leave(node, now);
  if (crews_ > 0 && busy_crews_ >= crews_) {
    queue_.emplace_back(node, repair);
    out_until_[static_cast<std::size_t>(node)] = kLongestTime;
  } else {
    start_repair(node, now, repair);
  }
}

void NodePool::take_out_until(int node, Micros now, Micros end) {
  Micros& until = out_until_[static_cast<std::size_t>(node)];
  if (is_out(node) && end <= until) return;
  if (!is_out(node)) leave(node, now);
  until = end;
  ++busy_crews_;  // take_return() gives it back; runs with records have no crews to wait for
  repairs_.emplace(end, node);
}

void NodePool::fill_job(int wanted) {
  while (in_job_ < wanted && !idle_.empty()) {
    places_[static_cast<std::size_t>(idle_.back())] = Place::job;
    idle_.pop_back();
    ++in_job_;
  }
}

void NodePool::shrink_job(int kept) {
  for (int node = size() - 1; node >= 0 && in_job_ > kept; --node) {
    if (place(node) != Place::job) continue;
    places_[static_cast<std::size_t>(node)] = Place::idle;
    idle_.push_back(node);
    --in_job_;
  }
}

std::optional<int> NodePool::take_return() {
  const auto [date, node] = repairs_.top();
  repairs_.pop();
  --busy_crews_;
  if (!queue_.empty() && busy_crews_ < crews_) {
    const auto [waiting, repair] = queue_.front();
    queue_.pop_front();
    start_repair(waiting, date, repair);
  }
  if (out_until_[static_cast<std::size_t>(node)] > date) return std::nullopt;
  places_[static_cast<std::size_t>(node)] = Place::idle;
  idle_.push_back(node);
  --out_;
  out_time_ += date.value();
  return node;
}

Micros recorded_time_out(std::span<const RecordedFault> faults, int nodes, Micros end) {
  NodePool pool(nodes, nodes, 0);
  const auto return_until = [&](Micros date) {
    while (pool.next_return() <= date) pool.take_return();
  };
  for (const RecordedFault& fault : faults) {
    if (fault.begin >= end) break;
    return_until(fault.begin);
    pool.take_out_until(fault.node, fault.begin, fault.end);
  }
  return_until(end);
  return pool.out_time(end);
}

}  // namespace tessera
