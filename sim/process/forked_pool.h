#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
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
  std::chrono::duration<double> took{};
};

/// A year.
inline constexpr std::chrono::hours kNoTimeLimit(24 * 365);

/// Calls in other processes, handed in one at a time, some of them at once. Those under way end
/// with the pool.
class ForkedPool {
 public:
  /// `jobs` >= 1 processes at a time; each call has `limit` of wall-clock time, then its process is
  /// killed. With `goes_on`, quick calls share a process, one behind the other, as long as it says
  /// there that another may follow; otherwise each has its own.
  ForkedPool(int jobs, std::chrono::duration<double> limit,
             std::function<bool()> goes_on = nullptr);

  /// So many `calls` are going to be started: none of the processes gets more than its share.
  void expect(std::size_t calls) { share_ = (calls + jobs_ - 1) / jobs_; }

  bool full() const {
    return running_.size() >= jobs_ && waiting_.size() + 1 >= calls_per_process();
  }
  bool empty() const { return running_.empty() && waiting_.empty(); }
  /// The pool must not be full. Throws std::system_error if there is no process to be had.
  void start(std::size_t id, std::function<std::string()> call);
  /// Waits until one call or more have ended, at most `patience` where given, or until the pool is
  /// empty, which it must not be before.
  std::vector<EndedCall> wait(std::optional<std::chrono::duration<double>> patience = std::nullopt);

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::vector<ForkedCall> calls;
    ForkedProcess process;
    Clock::time_point since;   ///< start of the call that runs
    std::size_t answered = 0;  ///< of `calls`

    std::size_t current() const { return calls[answered].id; }
    /// And is about to end.
    bool has_answered_all() const { return answered == calls.size(); }
  };

  std::size_t calls_per_process() const;
  void fork(std::vector<ForkedCall> calls);
  void fork_waiting();
  int milliseconds_to_wait(std::optional<std::chrono::duration<double>> patience) const;
  /// Takes what the process has answered; false when it has ended.
  bool take_answers(Running& running, std::vector<EndedCall>& ended);
  EndedCall ended_call(Running& running, EndedCall::How how, std::string text);
  /// A process that has ended, or is to be ended, by one that runs what it has not answered.
  void replace(std::list<Running>::iterator running);
  void take_overdue(std::vector<EndedCall>& ended);

  std::size_t jobs_;
  Clock::duration limit_;
  std::function<bool()> goes_on_;
  std::vector<ForkedCall> waiting_;
  std::list<Running> running_;
  std::chrono::duration<double> busy_{};  ///< of the calls that have ended
  std::size_t ended_ = 0;
  std::size_t share_ = 0;  ///< of a process, of all calls; 0: nobody knows
};

}  // namespace tessera
