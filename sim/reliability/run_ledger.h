#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/reliability/cluster_run.h"
#include "sim/reliability/node_pool.h"

namespace tessera {

/// Where a checkpoint lies.
enum class CheckpointPlace : std::uint8_t {
  drives,   ///< of the job's own nodes: outlives stops that take no node out
  memory,   ///< of other nodes: outlives stops that concern one node
  storage,  ///< outlives everything
};
inline constexpr std::size_t kCheckpointPlaces = 3;

/// The books of a run: where each microsecond went, what training is safe in a checkpoint, and who
/// is to blame for the rest.
class RunLedger {
 public:
  /// What a checkpoint holds.
  struct SavedWork {
    Micros useful;
    Micros date;
  };

  /// `plan` must outlive the object.
  RunLedger(const RunPlan& plan, bool with_timeline);

  /// From now on the job does `activity`, because of `cause` (-1: nobody's).
  void enter(Activity activity, int cause);
  /// How fast it trains, in (0, 1] of the full speed.
  struct Speed {
    double all = 1;
    double without_writes = 1;  ///< if no checkpoint were written beside it
    int replicas = 1;           ///< that train
  };
  /// Time goes on to `now`; training at `speed`.
  void advance(Micros now, const Speed& speed);

  /// Whether skip() leaves the record as complete as advance() does.
  bool can_skip() const { return !with_timeline_; }
  /// `cycles` times an interval of training and the checkpoint behind it.
  void skip(std::int64_t cycles, const Speed& speed);

  void count_event(int cause) { ++loss(cause).events; }
  void count_stop(int cause);
  /// A replica leaves, the job goes on.
  void count_drop(int cause) { ++loss(cause).drops, ++record_.drops; }
  /// From now on `cause` answers for what training takes longer.
  void blame_slowness(int cause) { slow_cause_ = cause; }

  /// What a checkpoint will hold that begins now.
  void snapshot() { taken_ = {useful_, now_}; }
  /// The job need not wait for it any more; one in storage may still be `written` beside training.
  void end_checkpoint(CheckpointPlace place, bool written_later);
  /// The one that was being written can be restored from.
  void end_write() { saved_.back() = writing_; }
  /// The last checkpoint in storage.
  SavedWork stored() const { return saved_.back(); }
  /// Back to `clean`, or to an earlier checkpoint where that is the last: later ones are wrong.
  void roll_back_to(SavedWork clean, int cause);
  /// Back to the last checkpoint that a stop leaves: in storage, or a later one where the copies on
  /// drives or in memory outlive it.
  void roll_back(int cause, bool drives, bool memory);

  Micros useful() const { return useful_; }
  /// Training since the last checkpoint in `place` or a safer one.
  Micros since_checkpoint(CheckpointPlace place = CheckpointPlace::storage) const {
    return now_training_ - checkpoint_at_[static_cast<std::size_t>(place)];
  }
  /// Until `work` is done at `speed`.
  Micros time_until(Micros work, double speed) const;

  RunRecord finish(Micros now, bool work_done, const NodePool& pool);

 private:
  CauseLoss& loss(int cause);
  void book_training(Micros time, const Speed& speed, std::int64_t times);
  void blame(Activity activity, Micros time);
  void go_back(const SavedWork& saved, int cause);
  void mark_lost(Micros since);
  void gather_recorded_causes();

  const RunPlan& plan_;
  bool with_timeline_;
  RunRecord record_;
  Micros now_;
  Micros now_training_;                                  ///< all training so far, lost or not
  std::array<Micros, kCheckpointPlaces> checkpoint_at_;  ///< of now_training_
  Activity activity_ = Activity::training;
  int cause_ = -1;
  int slow_cause_ = -1;
  Micros useful_;  ///< without what was taken back
  SavedWork taken_, writing_;
  std::array<SavedWork, kCheckpointPlaces> saved_;
};

}  // namespace tessera
