#pragma once

#include "configs/schema/scenario.pb.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// Schema messages <-> the values that the simulator works with. Values that the user left out and
/// that follow from others (model.kv_heads, training.micro_batch) are filled in; impossible
/// combinations pass through for sim/scenario/rules/check_scenario.h to report.
GpuSpec to_gpu(const schema::Gpu& message);
NodeSpec to_node(const schema::Node& message);
ClusterSpec to_cluster(const schema::Cluster& message);
ModelSpec to_model(const schema::Model& message);
FrameworkProfile to_framework(const schema::Framework& message);
GpuOverlay to_overlay(const schema::Overlay& message);
CollectiveSettings to_collectives(const schema::Collectives& message);
Scenario to_scenario(const schema::Scenario& message);

schema::Model to_message(const ModelSpec& model);
schema::Cluster to_message(const ClusterSpec& cluster);
schema::Gpu to_message(const GpuSpec& gpu);
schema::Overlay to_message(const GpuOverlay& overlay);
schema::Host to_message(const HostTable& host);
schema::Collectives to_message(const CollectiveSettings& settings);
schema::Scenario to_message(const Scenario& scenario);

}  // namespace tessera
