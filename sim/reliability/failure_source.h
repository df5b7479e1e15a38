#pragma once

#include <cstddef>
#include <queue>
#include <span>
#include <vector>

#include "sim/reliability/failure_model.h"
#include "sim/reliability/random_stream.h"

namespace tessera {

/// Something breaks.
struct FailureEvent {
  Micros date = kLongestTime;
  int cause = -1;       ///< in FailureModel::classes; behind these in the recorded faults
  int node = 0;         ///< the first of the nodes that it meets
  Micros recorded_end;  ///< of a recorded fault: when the node is back; else 0
};

/// The failures of `nodes` nodes in order of date. They do not depend on what the job does: two
/// policies with one seed meet the same ones, and those on nodes that are out meet nobody.
class FailureSource {
 public:
  /// `recorded`, sorted by `begin`, and the model must outlive the object.
  FailureSource(const FailureModel& model, std::span<const RecordedFault> recorded, int nodes,
                std::uint64_t seed);

  Micros next_date() const { return next_.top().date; }
  FailureEvent take();

 private:
  struct Later {
    bool operator()(const FailureEvent& a, const FailureEvent& b) const {
      return a.date != b.date ? a.date > b.date
                              : (a.cause != b.cause ? a.cause > b.cause : a.node > b.node);
    }
  };
  void draw(int cause, Micros since, int node);
  void draw_first(int cause);
  void push_recorded();
  bool is_exponential(int cause) const { return of(cause).shape == 1; }
  const FailureClass& of(int cause) const {
    return model_.classes[static_cast<std::size_t>(cause)];
  }

  const FailureModel& model_;
  std::span<const RecordedFault> recorded_;
  std::size_t recorded_taken_ = 0;
  int nodes_;
  std::vector<RandomStream> streams_;  ///< of each class
  std::priority_queue<FailureEvent, std::vector<FailureEvent>, Later> next_;
};

}  // namespace tessera
