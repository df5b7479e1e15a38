#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "app/explain/faster.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// What a faster part of the machine would do to the step.
struct Sensitivity {
  Resource resource = Resource::flops;
  double factor = 1;      ///< how much faster it was made
  Seconds step_time;      ///< with it
  double elasticity = 0;  ///< d ln(step time) / d ln(time that the resource takes): 1 where the
                          ///< step is as much faster as the resource, 0 where nothing waits for it
};

/// d ln(time) / d ln(1 / speed) between two simulations, as a finite difference.
double elasticity_of(Seconds before, Seconds after, double factor);

/// The step time of `scenario` on machines of which one resource at a time is `factor` (> 0, not 1)
/// times as fast, each simulated in a process of its own, `jobs` at a time; resources that the
/// machine lacks are left out. Elasticities of a step add up to 1 but for what no resource stands
/// for (starting and draining kernels, steps of collectives) and for rounding to waves and tiles.
/// Call before anything is simulated in this process. Throws InputError as plan_step does,
/// ForkedCallError where a simulation fails. `on_ended(done, all)` after each simulation.
std::vector<Sensitivity> sensitivities(
    const Scenario& scenario, const PredictorWeights& weights, double factor, int jobs,
    const std::function<void(std::size_t, std::size_t)>& on_ended = [](std::size_t, std::size_t) {
    });

}  // namespace tessera
