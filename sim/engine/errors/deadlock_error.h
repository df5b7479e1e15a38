#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace tessera {

/// A step that cannot end: some streams wait for what never comes (a message without a sender, a
/// collective that not every member issues, a circle of waits).
class DeadlockError : public std::runtime_error {
 public:
  /// One line per blocked stream, such as
  /// "gpu 2 stream pipeline_recv op 17 waits for message 5 from stage 1".
  explicit DeadlockError(std::vector<std::string> blocked);
  const std::vector<std::string>& blocked() const { return blocked_; }

 private:
  std::vector<std::string> blocked_;
};

}  // namespace tessera
