#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/reliability/micros.h"

namespace tessera {

/// Which replicas of a job train, and which have their nodes and read what the others hold.
class ReplicaSet {
 public:
  /// Of so many on so many nodes; all train.
  ReplicaSet(int replicas, int nodes) : all_(replicas), nodes_(nodes), training_(replicas) {}

  int training() const { return training_; }
  double share() const { return static_cast<double>(training_) / all_; }
  bool whole() const { return training_ == all_; }
  /// Whole replicas on `nodes` nodes.
  int on(int nodes) const { return static_cast<int>(std::int64_t{nodes} * all_ / nodes_); }
  /// Nodes that `replicas` need.
  int nodes_of(int replicas) const {
    return static_cast<int>((std::int64_t{replicas} * nodes_ + all_ - 1) / all_);
  }

  /// The job begins anew with so many.
  void start(int replicas) {
    training_ = replicas;
    joining_.clear();
  }
  /// As many replicas stop as `nodes` neighbours can belong to. False, and nothing, where fewer
  /// than `least` would be left.
  bool drop(int nodes, int least) {
    const int hit =
        std::min(training_, static_cast<int>((std::int64_t{nodes} * all_ + nodes_ - 1) / nodes_));
    if (training_ - hit < least) return false;
    training_ -= hit;
    return true;
  }
  /// The job has `nodes`: replicas that are whole with them train from `date` on.
  void join(int nodes, Micros date) {
    const int joining = std::max(0, on(nodes) - training_);
    joining_.resize(std::min(joining_.size(), static_cast<std::size_t>(joining)));
    joining_.resize(static_cast<std::size_t>(joining), date);
  }
  /// Nobody is back before `date`.
  void delay(Micros date) {
    for (Micros& back : joining_) back = std::max(back, date);
  }

  Micros next_joining() const {
    return joining_.empty() ? kLongestTime : *std::ranges::min_element(joining_);
  }
  /// The one of next_joining() trains.
  void take_back() {
    joining_.erase(std::ranges::min_element(joining_));
    ++training_;
  }

 private:
  int all_, nodes_;
  int training_;
  std::vector<Micros> joining_;
};

}  // namespace tessera
