#pragma once

#include <vector>

#include "hw/units/input_error.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// A chapter of the rule book each: adds what of it `scenario` breaks. `Problem::where` is the
/// field to change, `Problem::other` the fields that it conflicts with.
using Problems = std::vector<Problem>;
void check_layout(const Scenario& scenario, Problems& problems);
void check_precisions(const Scenario& scenario, Problems& problems);
void check_memory(const Scenario& scenario, Problems& problems);
/// Of training.offload_optimizer.
void check_host_update(const Scenario& scenario, Problems& problems);
/// `other`: the field whose time follows from the bandwidth.
Problem unknown_host_bandwidth(const NodeSpec& node, const char* other);
void check_overrides(const Scenario& scenario, Problems& problems);
/// Fields of a model that its family does not read.
void check_family_fields(const ModelSpec& model, Problems& problems);
/// Of image models, whatever the framework.
void check_images(const Scenario& scenario, Problems& problems);

}  // namespace tessera
