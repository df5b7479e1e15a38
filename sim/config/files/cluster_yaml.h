#pragma once

#include <string>

#include "hw/node.h"
#include "sim/config/catalog.h"

namespace tessera {

/// `cluster` as a file of its own that `load_cluster` and `cluster: file` of a scenario read. Its
/// GPU is written as the entry `gpu` of the catalog with what differs from it.
std::string cluster_yaml(const ClusterSpec& cluster, const std::string& gpu,
                         const Catalog& catalog);

}  // namespace tessera
