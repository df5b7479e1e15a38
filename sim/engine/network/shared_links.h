#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "sim/engine/clock/outer_clock.h"
#include "sim/engine/network/link_paths.h"

namespace tessera {

/// Links that flows share max-min fairly, the clock of these flows, and the actors beside them:
/// what the engine wants of SimGrid (sim/simgrid).
class SharedLinks : public OuterClock {
 public:
  /// Under way until it ends. To be held until the moment after that.
  class Flow {
   public:
    virtual ~Flow() = default;
  };
  /// Sleeps until its end.
  class Actor {
   public:
    virtual ~Actor() = default;
    virtual void end() = 0;
  };

  /// Sends `bytes` over `path`. `id`: what the function of `when_flow_ends` is told.
  virtual std::unique_ptr<Flow> send(PathId path, double bytes, std::size_t id) = 0;
  /// Once, before flows are sent.
  virtual void when_flow_ends(std::function<void(std::size_t id)> on_end) = 0;
  /// From now on, no flow over `path`, one of LinkPaths::has_limit, is faster than `rate`.
  virtual void set_limit(PathId path, BytesPerSecond rate) = 0;
  /// On the host of `gpu`, the position among those of the start.
  virtual std::unique_ptr<Actor> create_actor(const std::string& name, int gpu) = 0;
  /// Until nothing is left to do.
  virtual void run() = 0;
};

}  // namespace tessera
