#pragma once

#include <memory>
#include <simgrid/s4u.hpp>

namespace tessera {

/// Starts SimGrid with the settings that make its network a plain max-min fluid
/// (docs/decisions/0004-simgrid-as-a-plain-fluid.md). SimGrid keeps one clock per process and
/// cannot set its models twice: a second call in a process throws std::logic_error. Signal handlers
/// stay those of the caller.
std::unique_ptr<simgrid::s4u::Engine> start_simgrid();

}  // namespace tessera
