#pragma once

#include <memory>

#include "sim/engine/network/shared_links.h"

namespace tessera {

/// Loads SimGrid, where that has not been done. Most steps need none of it, and loading it takes as
/// long as such a step: so it is a module of its own (docs/decisions/0101-simgrid-in-a-module.md).
/// Throws InputError, with the file that is missing, if it cannot be loaded.
void load_simgrid();

bool simgrid_is_loaded();

/// Loads and starts SimGrid with a host for each of `gpus`. Once in a process: std::logic_error.
/// `paths` have to outlive the result.
std::unique_ptr<SharedLinks> start_shared_links(const LinkPaths& paths, int gpus);

/// Whether start_shared_links() was called in this process.
bool simgrid_has_started();

}  // namespace tessera
