#pragma once

#include <string>

#include "sim/plan/timed_program.h"

namespace tessera {

/// The ops of every pipeline stage, one per line, in the order in which the host submits them.
std::string program_text(const Program& program);

/// Every distinct segment with its kernels: kind, shape, FLOPs, bytes and predicted duration.
std::string timed_program_text(const TimedProgram& timed);

}  // namespace tessera
