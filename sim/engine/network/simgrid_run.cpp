#include "sim/engine/network/simgrid_run.h"

#include "sim/engine/network/simgrid_module.h"

namespace tessera {

void SimGridRun::run(SimClock& clock, FlowNetwork& network, const LinkPaths& paths, int gpus,
                     const std::function<void(SharedLinks&)>& on_simgrid) {
  clock.run_alone();
  if (!clock.waits_for_simgrid()) return;
  links_ = start_shared_links(paths, gpus);
  network.share_on(*links_);
  if (on_simgrid) on_simgrid(*links_);
  clock.join_simgrid(*links_);
  links_->run();
}

}  // namespace tessera
