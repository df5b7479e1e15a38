#pragma once

#include <string>
#include <vector>

#include "hw/node.h"

namespace tessera {

/// What a reader of a result should know of the links that it rests on, a line each: links of the
/// node that are not those of its GPUs, what keeps NICs from their rate, and GPUs that cannot read
/// each other's memory. `cluster` is valid.
std::vector<std::string> notes_on_links(const ClusterSpec& cluster);

}  // namespace tessera
