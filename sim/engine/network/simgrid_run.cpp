#include "sim/engine/network/simgrid_run.h"

#include "sim/engine/clock/simgrid_session.h"

namespace tessera {

void SimGridRun::run(SimClock& clock, FlowNetwork& network, const LinkPaths& paths, int gpus,
                     const std::function<void(const Platform&)>& on_simgrid) {
  clock.run_alone();
  if (!clock.waits_for_simgrid()) return;
  engine_ = start_simgrid();
  network.share_on(platform_.emplace(paths, gpus));
  if (on_simgrid) on_simgrid(*platform_);
  clock.join_simgrid();
  engine_->run();
}

}  // namespace tessera
