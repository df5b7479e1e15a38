#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/engine/memory/memory_pressure.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// A step whose GPUs have too little memory at run time, whatever leaves them.
class OutOfMemoryError : public std::runtime_error {
 public:
  /// One line per GPU that waits for room.
  explicit OutOfMemoryError(const std::vector<std::string>& lines);
};

/// Throws OutOfMemoryError for stages that hold more than the limit all the time.
void check_static_memory(const TimedProgram& timed);

/// "gpu 3 (stage 1) op 17 (layer.forward.attention of micro-batch 2) needs 3200 MiB, 1100 MiB more
/// than there is: the limit is 40 GiB".
std::string text_of(const MemoryShortage& shortage, const TimedProgram& timed);

}  // namespace tessera
