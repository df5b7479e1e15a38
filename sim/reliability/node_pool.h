#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "sim/reliability/failure_model.h"
#include "sim/reliability/micros.h"

namespace tessera {

/// Where the nodes of a cluster are: in the job, idle beside it, or out for repair.
class NodePool {
 public:
  /// The first `in_job` of `nodes` are in the job. `crews` repair one node each, first come first
  /// served; 0: nobody waits for a crew.
  NodePool(int nodes, int in_job, int crews);

  bool is_in_job(int node) const { return place(node) == Place::job; }
  bool is_out(int node) const { return place(node) == Place::out; }
  int size() const { return static_cast<int>(places_.size()); }
  int in_job() const { return in_job_; }
  int idle() const { return static_cast<int>(idle_.size()); }

  /// Out from `now` for `repair` of a crew's time. Nothing for a node that is out already.
  void take_out(int node, Micros now, Micros repair);
  /// Out until `end`, without a crew; a node that is out stays so until the later date.
  void take_out_until(int node, Micros now, Micros end);
  /// Idle nodes join until the job has `wanted` or there are none.
  void fill_job(int wanted);
  /// All but `kept` of its nodes leave the job.
  void shrink_job(int kept);

  Micros next_return() const { return repairs_.empty() ? kLongestTime : repairs_.top().first; }
  /// The node whose repair ends at next_return() is idle again; nothing where it stays out longer.
  std::optional<int> take_return();

  /// Time that nodes were out up to `now`, summed over them.
  Micros out_time(Micros now) const { return Micros(out_time_ + now.value() * out_); }

 private:
  enum class Place : std::uint8_t { job, idle, out };
  using Return = std::pair<Micros, int>;
  Place place(int node) const { return places_[static_cast<std::size_t>(node)]; }
  void leave(int node, Micros now);
  void start_repair(int node, Micros now, Micros repair);

  std::vector<Place> places_;
  std::vector<Micros> out_until_;
  std::vector<int> idle_;
  int in_job_;
  int crews_;
  int busy_crews_ = 0;
  std::deque<std::pair<int, Micros>> queue_;  ///< nodes that wait for a crew, and what they need
  std::priority_queue<Return, std::vector<Return>, std::greater<>> repairs_;
  std::int64_t out_ = 0;
  std::int64_t out_time_ = 0;  ///< minus the dates at which nodes left, plus those of their return
};

/// Time that `nodes` nodes were out up to `end` by a record in order of `begin`, summed over them.
Micros recorded_time_out(std::span<const RecordedFault> faults, int nodes, Micros end);

}  // namespace tessera
