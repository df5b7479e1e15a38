// What sim/engine/network/simgrid_module.cpp looks for in the module.

#include "sim/simgrid/simgrid_links.h"

extern "C" const char tessera_module_version[] = TESSERA_VERSION;

extern "C" tessera::SharedLinks* tessera_start_shared_links(const tessera::LinkPaths* paths,
                                                            int gpus) {
  return new tessera::SimGridLinks(*paths, gpus);
}
