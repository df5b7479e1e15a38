#pragma once

#include <string>

#include "sim/plan/timed_program.h"

namespace tessera {

/// Per pipeline stage: peak by category, where it is reached and what lives there.
std::string memory_text(const Program& program, const LibraryMemory& libraries);

}  // namespace tessera
