#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/program.h"

namespace tessera {

class Gpu;

/// An in-order queue of a GPU. Two rules: an op starts when it is the head of its stream, its host
/// has launched it and the ops it waits for have ended; when it ends, who waits for it is woken.
/// Streams are passive: they move only inside actions of the clock.
class Stream {
 public:
  Stream(Gpu& gpu, StreamKind kind, const std::vector<std::int32_t>& queue)
      : gpu_(gpu), kind_(kind), queue_(queue) {}

  /// Starts the head if it may start.
  void advance();
  /// The load of the GPU has changed: the kernels that run here end earlier or later.
  void change_pace();
  /// Why the stream has not run empty, such as "gpu 2 stream compute op 3 waits for op 2"; nothing
  /// if it has.
  std::optional<std::string> blocked() const;

 private:
  static constexpr std::int32_t kNone = -1;

  void begin(std::int32_t op);
  void execute(const ProgramOp& op);
  void end();
  void work_until_done();
  std::string reason() const;

  Gpu& gpu_;
  StreamKind kind_;
  const std::vector<std::int32_t>& queue_;
  std::size_t head_ = 0;  ///< position in the queue of the next op to start
  std::int32_t running_ = kNone;
  // Of kernels that run:
  Seconds work_;  ///< left at `since_`, in time alone on the GPU
  Seconds since_;
  double stretch_ = 1;  ///< time that a second of work takes
  std::int32_t pace_ =
      0;  ///< changes of pace so far; an end that was posted before the last is void
};

}  // namespace tessera
