#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "sim/report/drawings/topology_drawing.h"

namespace tessera {

/// A drawing of a topology for a page, in whole pixels. `row_of_link` says which row of the page's
/// links each link is; the others belong to none.
nlohmann::ordered_json drawn_topology(const TopologyDrawing& drawing,
                                      const std::map<LinkId, int>& row_of_link);

}  // namespace tessera
