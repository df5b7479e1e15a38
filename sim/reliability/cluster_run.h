#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/reliability/failure_model.h"
#include "sim/reliability/micros.h"

namespace tessera {

/// What the job does; every microsecond of a run is one of these.
enum class Activity : std::uint8_t {
  training,
  checkpoint,  ///< waits for a checkpoint
  detection,   ///< something broke, nobody knows yet
  restart,     ///< until it trains again
  waiting,     ///< for nodes
  lost,        ///< trained what a failure took back
};
inline constexpr int kActivityCount = 6;
std::string_view name_of(Activity activity);

/// A stretch of a run.
struct ActivitySpan {
  Micros begin, end;
  Activity activity = Activity::training;
};

/// A job on a cluster for a long time. All times are at least 0.
struct RunPlan {
  int nodes = 1;             ///< of the job
  int spares = 0;            ///< further nodes, powered and idle: they fail as the others do
  int repair_crews = 0;      ///< nodes that can be repaired at a time; 0: all
  Micros length;             ///< wall-clock time; above 0
  Micros interval;           ///< of training between two checkpoints; above 0
  Micros checkpoint;         ///< the job waits so long for one
  Micros write;              ///< behind that, beside training, until it can be restored from
  Micros memory_interval;    ///< of copies in the memory of other nodes; 0: none
  Micros memory_checkpoint;  ///< the job waits so long for one
  Micros local_interval;     ///< of copies on the drives of the job's own nodes; 0: none
  Micros local_checkpoint;   ///< the job waits so long for one
  int full_every = 1;        ///< of so many checkpoints in storage one is whole
  Micros increment;          ///< the job waits so long for another one
  Micros increment_write;    ///< behind that, as `write`
  Micros increment_restart;  ///< what reading one adds to `restart`
  /// Time of training over that without, while a checkpoint is written beside it; at least 1.
  double write_slowdown = 1;
  Micros restart;        ///< from the stop, or the nodes being there, to the first step
  bool elastic = false;  ///< goes on with fewer replicas where nodes are missing
  /// Only the replicas that lose a node stop; each comes back `restart` after its nodes are there.
  bool replica_wise = false;
  int replicas = 1;        ///< of the model, evenly over the nodes; those that can only leave
                           ///< together count as one
  int least_replicas = 1;  ///< with fewer it waits
  /// Training in a unit of time over that of all replicas, by the number that train, from 0 to
  /// `replicas`, in [0, 1]; empty: their share.
  std::vector<double> pace_of_replicas;
  FailureModel failures;
  std::vector<RecordedFault> recorded;  ///< in order of `begin`
  Micros recorded_detection;            ///< from their beginning until the job is stopped
  Micros work;                          ///< full-speed training after which the job ends; 0: never
};

/// Throws InputError (without `where`) for a plan that no run can follow.
void check_plan(const RunPlan& plan);

/// What a cause took from a run.
struct CauseLoss {
  std::string cause;
  std::int64_t events = 0;  ///< that met a node in service
  std::int64_t stops = 0;   ///< of the job
  std::int64_t drops = 0;   ///< of replicas, while the job went on
  Micros lost, slow, detection, restart, waiting;

  Micros total() const { return lost + slow + detection + restart + waiting; }
};

/// What became of a run. The seven times add up to `wall`, to the microsecond.
struct RunRecord {
  Micros wall;           ///< `length`, or less where the work was done earlier
  Micros useful;         ///< training that counts, at full speed
  Micros slow;           ///< what training took longer, on fewer or slower nodes or beside writes,
                         ///< lost or not
  Micros beside_writes;  ///< which of it the writes of checkpoints took
  Micros fewer;          ///< training with fewer than all replicas, lost or not
  int least_replicas = 0;  ///< that trained
  Micros lost;             ///< training that a failure took back, at full speed
  Micros checkpoint;       ///< waits for checkpoints
  Micros detection, restart, waiting;
  std::int64_t stops = 0;
  std::int64_t drops = 0;  ///< of replicas, while the job went on
  std::int64_t checkpoints = 0;
  bool work_done = false;
  Micros node_time_out;                ///< over the nodes and spares
  double node_availability = 1;        ///< share of their time in service, in [0, 1]
  std::vector<CauseLoss> causes;       ///< in order of the plan; recorded ones by name behind them
  std::vector<ActivitySpan> timeline;  ///< without gaps; only where it was asked for

  Micros accounted() const {
    return useful + slow + lost + checkpoint + detection + restart + waiting;
  }
  /// Share of the time that was useful, in [0, 1].
  double effective_ratio() const { return useful / wall; }
  /// Time in which a failure would have stopped the job.
  Micros at_risk() const { return wall - waiting - detection; }
};

/// Simulates `plan` event by event; equal seeds, equal records. Work that no checkpoint holds yet
/// counts at the end: the job is stopped with one.
RunRecord simulate_run(const RunPlan& plan, std::uint64_t seed, bool with_timeline = false);

}  // namespace tessera
