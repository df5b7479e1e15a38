#pragma once

#include <cstdint>

#include "sim/plan/timed_program.h"

namespace tessera::test {

/// A small program of up to 8 ranks from a seed: any layout, kernels, all-reduces of every group,
/// messages, waits, host costs and host waits. Written stage by stage in one global order, so it
/// always ends.
TimedProgram random_program(std::uint64_t seed);

}  // namespace tessera::test
