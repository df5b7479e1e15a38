#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "sim/plan/timed_program.h"
#include "sim/trace/launch_dates.h"
#include "sim/trace/stage_order.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// Looks up a finished Timeline: what a rank ran, and which send fed which recv. Refers to both
/// arguments, which must outlive it. The timeline must hold every op of every rank that was
/// simulated; of the others, what it finds is what those did who stand for them.
class TimelineIndex {
 public:
  TimelineIndex(const TimedProgram& timed, const Timeline& timeline);

  int ranks() const { return timed_.program.layout.world_size(); }
  /// Ranks that were simulated, ascending, each with the number of ranks that it stands for, itself
  /// included.
  struct SimulatedRank {
    int rank = 0;
    int stands_for = 1;
  };
  std::span<const SimulatedRank> simulated() const { return simulated_; }
  Seconds step_time() const { return timeline_.step_time; }
  const RankFolding& folding() const { return timeline_.folding; }
  RankPosition position(int rank) const { return position_of(rank, timed_.program.layout); }
  const RankProgram& program_of(int rank) const;
  /// Which of the program's stages `rank` runs.
  int number_of(int rank) const;
  const StageOrder& order_of(int rank) const;
  /// Records of the rank; the position in the span is the op's number.
  std::span<const OpRecord> records_of(int rank) const;
  /// When the ops of the rank were launched, by op: they could not start earlier.
  std::vector<Seconds> launch_dates_of(int rank) const;
  /// Memory samples of the rank, in order of time.
  std::span<const MemorySample> memory_of(int rank) const;
  /// Its waits for memory, likewise.
  std::span<const MemoryStall> stalls_of(int rank) const;
  /// What ran again in these waits, likewise.
  std::span<const PressureRerun> reruns_of(int rank) const;
  /// The op of a send, and whose; it refers to its record.
  struct Send {
    int rank = 0;
    const OpRecord& record;
  };
  /// The send whose message ended `recv` on `rank`; empty where the program has none.
  std::optional<Send> send_of(int rank, const ProgramOp& recv) const;

 private:
  using MessageKey = std::tuple<int, int, int>;  // from stage, to stage, tag

  const TimedProgram& timed_;
  const Timeline& timeline_;
  std::vector<StageOrder> orders_;       // by stage
  std::vector<StageLaunches> launches_;  // by stage
  std::vector<SimulatedRank> simulated_;
  std::vector<std::size_t> first_record_;  // by rank, and one past the end
  std::vector<std::size_t> first_sample_;  // by rank, and one past the end
  std::map<MessageKey, std::int32_t> send_op_;
};

}  // namespace tessera
