#pragma once

#include <cstdint>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What a GPU still lacks when nothing more can leave it.
struct MemoryShortage {
  int rank = 0;
  std::int32_t op = 0;
  Bytes needed;   ///< by the op: what it takes, and brings back
  Bytes missing;  ///< of that
};

/// Keeps one GPU within its limit while the step runs. An allocation that would cross the limit
/// raises pressure, and the op waits until there is room.
class MemoryKeeper {
 public:
  MemoryKeeper() = default;
  MemoryKeeper(const MemoryKeeper&) = delete;
  MemoryKeeper& operator=(const MemoryKeeper&) = delete;
  virtual ~MemoryKeeper() = default;

  /// Whether `op` may begin: all it needs is there, all it takes fits. Else copies are started, or
  /// `rerun()` has to run first.
  virtual bool admit(std::int32_t op) = 0;
  virtual void ended(std::int32_t op) = 0;
  /// Forward op to run again, now, on the compute stream; -1: none.
  virtual std::int32_t rerun() const = 0;
  virtual Seconds rerun_time(std::int32_t op) const = 0;
  virtual void rerun_began() = 0;
  virtual void rerun_ended() = 0;

  /// Ops that wait for room although nothing is on its way.
  virtual std::vector<MemoryShortage> shortages() const = 0;
  virtual const std::vector<PressureCopy>& copies() const = 0;
  virtual const std::vector<PressureRerun>& reran() const = 0;
  virtual const std::vector<MemoryStall>& stalls() const = 0;
};

}  // namespace tessera
