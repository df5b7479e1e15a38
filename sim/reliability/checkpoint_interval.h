#pragma once

#include "sim/reliability/cluster_run.h"

namespace tessera {

/// Training between two checkpoints that wastes least, to first order: sqrt(2 d M) with
/// `checkpoint` d and `mean_time_to_failure` M (Young, CACM 1974).
Seconds young_interval(Seconds checkpoint, Seconds mean_time_to_failure);

/// The same to higher order (Daly, FGCS 2006, equation 37).
Seconds daly_interval(Seconds checkpoint, Seconds mean_time_to_failure);

/// Mean time that an exponentially failing run takes per unit of training: Daly's equation 13,
/// exp(R/M) (exp((t+d)/M) - 1) M / t with a restart R that may fail itself. Its reciprocal is the
/// effective ratio, in (0, 1).
double expected_effective_ratio(Seconds interval, Seconds checkpoint, Seconds restart,
                                Seconds mean_time_to_failure);

/// The interval whose runs over `seeds` seeds from `first_seed` have the highest mean effective
/// ratio, of fifteen from a fifth to five times `guess` and five more around the best. All meet the
/// same failures. None is below 1 s or 1 / 200,000 of the run.
struct BestInterval {
  Micros interval;
  double effective_ratio = 0;
};
BestInterval best_interval(RunPlan plan, Seconds guess, std::uint64_t first_seed, int seeds);

}  // namespace tessera
