#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/process/forked_process.h"

namespace tessera {

/// How a call of a ForkedPool went.
struct EndedCall {
  enum class How { returned, failed, timed_out };
  std::size_t id = 0;
  How how = How::returned;
  std::string text;  ///< what the call returned, or why it failed
};

/// Calls in processes of their own, handed in one at a time, some of them at once. Those under way
/// end with the pool.
class ForkedPool {
 public:
  /// `jobs` >= 1 calls at a time; each has `limit` of wall-clock time, then its process is killed.
  ForkedPool(int jobs, std::chrono::duration<double> limit);

  bool full() const { return running_.size() >= jobs_; }
  bool empty() const { return running_.empty(); }
  /// The pool must not be full. Throws std::system_error if there is no process to be had.
  void start(std::size_t id, const std::function<std::string()>& call);
  /// Waits until one call or more have ended, at most `patience` where given. The pool must not
  /// be empty.
  std::vector<EndedCall> wait(std::optional<std::chrono::duration<double>> patience = std::nullopt);

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    ForkedProcess process;
    Clock::time_point deadline;
  };
  int milliseconds_to_wait(std::optional<std::chrono::duration<double>> patience) const;
  void take_overdue(std::vector<EndedCall>& ended);

  std::size_t jobs_;
  Clock::duration limit_;
  std::map<std::size_t, Running> running_;  ///< by id
};

}  // namespace tessera
