#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

namespace tessera {

/// A call for another process; `id` is its owner's.
struct ForkedCall {
  std::size_t id = 0;
  std::function<std::string()> call;
};

/// How a call in another process went.
struct CallOutcome {
  bool returned = false;
  std::string text;  ///< what it returned, or that of the exception that it threw
};

/// A child process that runs calls one behind the other and writes their answers into a pipe. Ends
/// the child if it is dropped before it was waited for.
class ForkedProcess {
 public:
  /// The child ends before the last call where `goes_on`, asked between two calls, says no. Throws
  /// std::system_error if fork or pipe fail.
  ForkedProcess(std::span<const ForkedCall> calls, const std::function<bool()>& goes_on);
  ~ForkedProcess();
  ForkedProcess(ForkedProcess&& other) noexcept;
  ForkedProcess& operator=(ForkedProcess&&) = delete;

  /// Becomes readable when read_some() would not block.
  int descriptor() const { return read_end_; }
  /// Takes what has arrived, waiting for it if need be; false when the child has closed its end.
  bool read_some();
  /// Of the next call; empty where it has not arrived whole.
  std::optional<CallOutcome> next_answer();
  /// After read_some() returned false: waits for the child's end, and says what was wrong with it;
  /// empty where it ended by itself.
  std::string end();

 private:
  pid_t child_ = -1;
  int read_end_ = -1;
  std::string received_;  ///< of each answer a mark, its text's size and the text
};

}  // namespace tessera
