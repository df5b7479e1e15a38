#pragma once

#include <vector>

#include "app/html/points_page.h"
#include "app/search/search_answer.h"
#include "app/sweep/sweep_store.h"

namespace tessera {

/// Every layout that was simulated and fits, for `tessera plan parallelism --report`.
PointsReport points_of(const std::vector<SearchCase>& cases);

/// Every simulated point, for `tessera sweep --report`; the first `kMostPoints` of more.
PointsReport points_of(SweepStore& store);

}  // namespace tessera
