#pragma once

#include <string_view>

#include "hw/units/quantity.h"

namespace tessera {

/// What the host takes for a call that a server's benchmark made from Python, without a CUDA graph:
/// no call is shorter, whatever the GPU does. `software`: a name of a kernel or of a stack in a
/// measured file. Zero for calls from graphs, and for software that nobody timed.
Seconds host_seconds(std::string_view software, std::string_view gpu);

}  // namespace tessera
