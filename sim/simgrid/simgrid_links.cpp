#include "sim/simgrid/simgrid_links.h"

#include <algorithm>
#include <cstdint>
#include <simgrid/kernel/Timer.hpp>
#include <utility>

#include "sim/simgrid/simgrid_session.h"

namespace tessera {
namespace {

namespace s4u = simgrid::s4u;

class SentFlow : public SharedLinks::Flow {
 public:
  explicit SentFlow(s4u::CommPtr comm) : comm_(std::move(comm)) {}

 private:
  s4u::CommPtr comm_;
};

class SleepingActor : public SharedLinks::Actor {
 public:
  SleepingActor(const std::string& name, s4u::Host& host) {
    s4u::Actor::create(name, &host, [end = end_] { end->acquire(); });
  }
  void end() override { end_->release(); }

 private:
  s4u::SemaphorePtr end_ = s4u::Semaphore::create(0);
};

}  // namespace

Seconds SimGridClock::now() const {
  return Seconds(s4u::Engine::get_clock());
}

// SimGrid's clock may lie one rounding above ours, and it refuses dates in its past.
void SimGridClock::at(Seconds date, std::function<void()> action) {
  simgrid::kernel::timer::Timer::set(std::max(date, now()).value(), std::move(action));
}

SimGridLinks::SimGridLinks(const LinkPaths& paths, int gpus)
    : engine_(start_simgrid()), platform_(paths, gpus) {}

// SimGrid's user data of a flow is its id + 1.
std::unique_ptr<SharedLinks::Flow> SimGridLinks::send(PathId path, double bytes, std::size_t id) {
  void* const data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id) + 1);
  return std::make_unique<SentFlow>(platform_.send(path, bytes, data));
}

void SimGridLinks::when_flow_ends(std::function<void(std::size_t id)> on_end) {
  s4u::Activity::on_completion_cb([on_end = std::move(on_end)](const s4u::Activity& activity) {
    const auto* comm = dynamic_cast<const s4u::Comm*>(&activity);
    if (comm == nullptr || comm->get_data<void>() == nullptr) return;
    on_end(reinterpret_cast<std::uintptr_t>(comm->get_data<void>()) - 1);
  });
}

std::unique_ptr<SharedLinks::Actor> SimGridLinks::create_actor(const std::string& name, int gpu) {
  return std::make_unique<SleepingActor>(name, platform_.gpu_host(gpu));
}

}  // namespace tessera
