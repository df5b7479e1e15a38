#include "sim/engine/errors/deadlock_error.h"

#include <utility>

#include "sim/engine/errors/message_with_lines.h"

namespace tessera {

DeadlockError::DeadlockError(std::vector<std::string> blocked)
    : std::runtime_error(with_lines("the step cannot end:", blocked)),
      blocked_(std::move(blocked)) {}

}  // namespace tessera
