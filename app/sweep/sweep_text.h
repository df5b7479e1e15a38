#pragma once

#include <string>

#include "app/sweep/run_sweep.h"
#include "app/sweep/sweep_store.h"

namespace tessera {

/// The points of a store in order of number: point, the sweep's columns, outcome, reason, metrics.
/// The same points make the same bytes, in whichever order and by however many runs they came.
std::string sweep_csv(SweepStore& store);
/// The same as one JSON object a line.
std::string sweep_jsonl(SweepStore& store);

/// What became of the points, why some are invalid, and the five with most tokens per second and
/// GPU that fit.
std::string sweep_table(const SweepCounts& counts, SweepStore& store);
/// The part about counts alone.
std::string sweep_counts_text(const SweepCounts& counts);

/// "[#####...............]  125/500  25 %  84.2 points/s  0:05 left" after `seconds`.
std::string progress_text(const SweepCounts& counts, double seconds);

}  // namespace tessera
