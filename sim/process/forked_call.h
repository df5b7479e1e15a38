#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera {

/// A call in a process of its own failed: what() is the text of the exception it threw, or names
/// the signal that ended the process.
class ForkedCallError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs `call` in a fork of this process and returns what it returns; about 3 ms. SimGrid allows
/// one simulation per process, so programs that run several run each in here. Throws
/// ForkedCallError if the call fails, std::system_error if there is no process to be had.
std::string run_forked(const std::function<std::string()>& call);

/// What became of one call: its result, or what() of the error that it ended with.
struct ForkedOutcome {
  std::string result;
  std::string error;  ///< empty: it succeeded
};

/// Runs all `calls`, at most `jobs` (>= 1) at a time, and returns what became of them in their
/// order; `on_ended(n)` after each, with how many have ended. `goes_on`: as of ForkedPool.
std::vector<ForkedOutcome> run_forked_each(const std::vector<std::function<std::string()>>& calls,
                                           int jobs,
                                           const std::function<void(std::size_t)>& on_ended,
                                           const std::function<bool()>& goes_on = nullptr);

/// Runs all `calls`, at most `jobs` (>= 1) at a time, and returns their results in the order of
/// the calls. If some fail, the others still run, and the error of the first in that order is
/// thrown.
std::vector<std::string> run_forked_all(const std::vector<std::function<std::string()>>& calls,
                                        int jobs);

}  // namespace tessera
