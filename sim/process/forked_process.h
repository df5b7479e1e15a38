#pragma once

#include <functional>
#include <string>

#include <sys/types.h>

namespace tessera {

/// A child process that runs one call and writes its outcome into a pipe. Ends the child if it is
/// dropped before it was waited for.
class ForkedProcess {
 public:
  /// Throws std::system_error if fork or pipe fail.
  explicit ForkedProcess(const std::function<std::string()>& call);
  ~ForkedProcess();
  ForkedProcess(ForkedProcess&& other) noexcept;
  ForkedProcess& operator=(ForkedProcess&&) = delete;

  /// Becomes readable when read_some() would not block.
  int descriptor() const { return read_end_; }
  /// Takes what has arrived, waiting for it if need be; false when the child has closed its end.
  bool read_some();
  /// After read_some() returned false: waits for the child's end and returns the call's result, or
  /// throws ForkedCallError.
  std::string result();

 private:
  pid_t child_ = -1;
  int read_end_ = -1;
  std::string received_;  ///< an outcome mark and the text
};

}  // namespace tessera
