#pragma once

#include <functional>
#include <string>

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera::test {

using Simulator = std::function<Timeline(const TimedProgram&)>;

/// Every field of a timeline, byte for byte; equal strings are equal timelines.
std::string packed(const Timeline& timeline);
Timeline unpacked(const std::string& bytes);

/// Runs `simulator` in a process of its own, so that one test can simulate several times. Errors
/// come as ForkedCallError.
Timeline simulate_forked(const TimedProgram& program, const Simulator& simulator);
/// With the engine itself.
Timeline simulate_forked(const TimedProgram& program);

}  // namespace tessera::test
