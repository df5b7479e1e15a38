#include "sim/engine/deadlock_error.h"

#include <utility>

#include "sim/engine/message_with_lines.h"

namespace tessera {

DeadlockError::DeadlockError(std::vector<std::string> blocked)
    : std::runtime_error(with_lines("the step cannot end:", blocked)),
      blocked_(std::move(blocked)) {}

}  // namespace tessera
