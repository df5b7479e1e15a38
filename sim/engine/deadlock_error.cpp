#include "sim/engine/deadlock_error.h"

#include <utility>

namespace tessera {
namespace {

std::string message_of(const std::vector<std::string>& blocked) {
  std::string message = "the step cannot end:";
  for (const std::string& line : blocked) message += "\n  " + line;
  return message;
}

}  // namespace

DeadlockError::DeadlockError(std::vector<std::string> blocked)
    : std::runtime_error(message_of(blocked)), blocked_(std::move(blocked)) {}

}  // namespace tessera
