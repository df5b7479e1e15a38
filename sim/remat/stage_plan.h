#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/remat/graph.h"
#include "sim/remat/schedule.h"

namespace tessera::remat {

/// Stage t runs operators again and then operator t for the first time; stage `ops` only runs
/// operators again, for kept tensors.
using Stage = std::int32_t;

enum class Origin : std::uint8_t { first_run, run_again, copied_in };

/// Stages in which a tensor is on the device without a break.
struct Run {
  Stage first = 0;  ///< in which it is made or first read
  Stage last = 0;   ///< in which it is last read, or `first`
  Origin origin = Origin::first_run;
  bool to_host = false;  ///< copied to the host before it goes
  Stage copy_from = 0;   ///< origin copied_in: the copy is queued when this stage starts, <= first
  Stage hold_to = 0;     ///< to_host: held to the end of this stage; == last: to its last reader
};

/// The plan that all planners of stages produce: what is on the device when, and what runs again.
struct StagePlan {
  std::vector<Run> runs;
  std::vector<std::int32_t> run_begin, run_count;  ///< by tensor; runs of a tensor ascend, disjoint
  std::vector<std::int32_t> again_begin;           ///< by stage, ops + 2 values
  std::vector<OpId> again;                         ///< ascending within a stage
};

/// Writes a StagePlan as steps. Keeps its buffers from call to call.
class ScheduleWriter {
 public:
  explicit ScheduleWriter(const Graph& graph);
  void write(const StagePlan& plan, Schedule& schedule);

 private:
  void bucket_copies(const StagePlan& plan);
  void stage(const StagePlan& plan, Stage t, Schedule& schedule);
  void find_last_readers(const StagePlan& plan, Stage t);
  void end_run(const Run& run, TensorId tensor, Schedule& schedule);
  /// The run of `tensor` that covers stage t, or null.
  const Run* run_at(const StagePlan& plan, TensorId tensor, Stage t);

  /// Between runs, on its way to the host or back (after run_at for the same stage).
  bool in_window(const StagePlan& plan, TensorId tensor, Stage t) const;

  const Graph& graph_;
  std::vector<std::int32_t> cursor_;  ///< by tensor: the run reached
  std::vector<Stage> seen_;           ///< by tensor: last stage in which a reader was found
  std::vector<OpId> stage_ops_;
  struct End {
    std::int32_t position;  ///< in stage_ops_
    TensorId tensor;
  };
  std::vector<End> ends_;
  struct Event {
    Stage stage;
    Stage order;
    TensorId tensor;
  };
  std::vector<Event> ins_, outs_, releases_;
  std::size_t next_in_ = 0, next_out_ = 0, next_release_ = 0;
  std::vector<std::uint8_t> out_queued_;
};

/// Chooses when copies start and end (copy_from, hold_to): as early and as late as the link needs
/// them, as far as `budget` (with static bytes) allows on top of `stage_peaks`, those of the plan
/// with copies on demand. What does not fit stays on demand.
class CopyCalendar {
 public:
  explicit CopyCalendar(const Graph& graph);
  void fit(StagePlan& plan, const HostLink& link, ByteCount budget,
           const std::vector<ByteCount>& stage_peaks);

 private:
  void stage_clock(const StagePlan& plan);
  void fit_out(StagePlan& plan, const HostLink& link);
  void fit_in(StagePlan& plan, const HostLink& link);
  bool read_by_last_op(TensorId tensor, Stage stage) const;

  const Graph& graph_;
  std::vector<Nanoseconds> clock_;  ///< start of every stage without stalls
  std::vector<ByteCount> room_;
  struct Copy {
    std::int32_t run;
    TensorId tensor;
    Stage key;
  };
  std::vector<Copy> copies_;
};

}  // namespace tessera::remat
