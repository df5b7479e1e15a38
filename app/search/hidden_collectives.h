#pragma once

#include <array>
#include <vector>

#include "sim/plan/device_load.h"
#include "sim/plan/timed_segment.h"

namespace tessera {

/// What the collectives of a GPU cost its kernels at the least.
///
/// Take any chain of ops that run one after another, and call T the time of the step, R that part
/// of it in which no kernel of the chain runs. Collectives of one stream run one after another, for
/// G or longer; so they run beside kernels of the chain for G - R or longer, and kernels beside
/// collectives take s times as long as alone (KernelsBeside): of a time t, t (1 - 1 / s) is lost.
/// Where the chain's kernels take W alone, T >= W + R + (G - R) (1 - 1 / s). That grows with R, so
/// that R may be replaced by what the chain spends elsewhere even if all runs alone. Which kernels
/// collectives run beside is not known: first those that lose the least are taken.
class HiddenCollectives {
 public:
  /// Takes `alone` and is on `stream`.
  void add_collective(StreamKind stream, Seconds alone, const DeviceLoad& load);
  void add_kernels(const TimedSegment& segment);

  /// By how much a step is longer than a chain of ops, each alone, of which `elsewhere` are not
  /// kernels of the compute stream.
  Seconds least_delay(Seconds elsewhere) const;

 private:
  /// Time of kernels beside a collective over their time alone.
  struct Stretch {
    double products = 1, others = 1;
  };
  struct Collectives {
    DeviceLoad load;
    Seconds alone;  ///< all of them
  };

  static Stretch stretch_of(const DeviceLoad& load);
  Seconds delay(Seconds beside, const Stretch& stretch) const;
  Seconds delay_of(std::vector<Collectives> stream, Seconds elsewhere) const;

  std::array<std::vector<Collectives>, kStreamCount> streams_;
  Seconds products_, others_;  ///< kernels alone
};

}  // namespace tessera
