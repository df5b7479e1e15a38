#pragma once

#include "predictor/fp32/power_mean.h"

namespace tessera {

/// A kernel that follows another on a stream starts and drains in about this time [s]: the floor of
/// GEMMs replayed from a graph is 2.5 us (measurements/kernels/README.md, tensor_core.csv).
inline constexpr double kQueuedFloor = 2e-6;

/// Sharpness of the change from host-bound to GPU-bound in isolated calls.
inline constexpr double kLaunchSharpness = 8;

/// Event-timed duration of an isolated call [s]. Between the two events the host works for `floor`;
/// the kernel starts once `launch_share` of that is done, so a long kernel shows only that part.
template <class T>
T isolated_seconds(const T& duration, const T& floor, const T& launch_share) {
  return smooth_max(floor, T(duration + launch_share * floor), T(kLaunchSharpness));
}

}  // namespace tessera
