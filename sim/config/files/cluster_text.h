#pragma once

#include <string>

#include "hw/node.h"
#include "sim/config/catalog.h"

namespace tessera {

/// The cluster that a file with this text would hold; `name` stands for it in messages. Throws
/// InputError with every problem.
ClusterSpec cluster_in(const std::string& yaml, const std::string& name, const Catalog& catalog);

}  // namespace tessera
