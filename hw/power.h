#pragma once

#include "hw/gpu.h"

namespace tessera {

/// Power of a GPU and its clock, from facts of its data sheet. The curve is that of a V100 and a
/// P100 that trained under caps (ml-energy/zeus, NSDI 2023): a fit to either alone is right on the
/// other (results/validation/power_caps.txt).
struct PowerCurve {
  // power = idle + dynamic * clock * (floor + (1 - floor) * clock^rise)
  double voltage_floor = 0.5;  ///< square of the lowest voltage over the one at boost clock
  double voltage_rise = 9;
  double mean_of_cap = 0.88;  ///< where the governor keeps the mean
};

/// While no kernel runs, ready for the next: as described, else 0.15 of the board power. A V100
/// that launches tiny kernels draws 38 of 250 W, a P100 34 of 250 (ml-energy/zeus), an A100 of two
/// clusters 63 of 400 (InternLM/AcmeTrace), a GB300 235 of 1400 (oracle-quickstart).
Watts idle_power(const GpuSpec& gpu);

/// In products that fill the GPU, at its boost clock: as described, else the board power, at which
/// the busiest tenth of the A100 of two clusters runs (InternLM/AcmeTrace: 389 to 404 of 400 W).
Watts busy_power(const GpuSpec& gpu);

/// What clocks do to the part of the power that grows with work: at share `clock` of the boost
/// clock, in (0, 1], the voltage falls with it, down to a floor. 1 at 1.
double dynamic_power_share(double clock, const PowerCurve& curve = {});

/// Share of the boost clock, in (0, 1], at which a GPU that draws `busy` at 1 stays within `cap`.
/// Governors keep the mean of the power below the cap. Caps below `idle` give the slowest clock.
double clock_under_cap(Watts idle, Watts busy, Watts cap, const PowerCurve& curve = {});

/// The clock at which `gpu` runs full products under its `power_limit`; 1 without one.
double clock_share(const GpuSpec& gpu);

/// `gpu` with the clocks and peaks that its `power_limit` leaves.
GpuSpec at_power_limit(GpuSpec gpu);

}  // namespace tessera
