#pragma once

#include <functional>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>

#include "sim/engine/network/shared_links.h"
#include "sim/simgrid/platform.h"

namespace tessera {

/// SimGrid's clock.
class SimGridClock : public OuterClock {
 public:
  Seconds now() const override;
  /// A date that SimGrid has passed by a rounding is now.
  void at(Seconds date, std::function<void()> action) override;
};

/// SimGrid, from its start on. One in a process.
class SimGridLinks : public SharedLinks {
 public:
  SimGridLinks(const LinkPaths& paths, int gpus);

  Seconds now() const override { return clock_.now(); }
  void at(Seconds date, std::function<void()> action) override {
    clock_.at(date, std::move(action));
  }
  std::unique_ptr<Flow> send(PathId path, double bytes, std::size_t id) override;
  void when_flow_ends(std::function<void(std::size_t id)> on_end) override;
  void set_limit(PathId path, BytesPerSecond rate) override { platform_.set_limit(path, rate); }
  std::unique_ptr<Actor> create_actor(const std::string& name, int gpu) override;
  void run() override { engine_->run(); }

 private:
  std::unique_ptr<simgrid::s4u::Engine> engine_;
  Platform platform_;
  SimGridClock clock_;
};

}  // namespace tessera
