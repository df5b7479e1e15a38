#pragma once

#include <optional>
#include <string_view>

#include "sim/collectives/collective.h"

namespace tessera {

// Names as in configuration files and measurements: "all_reduce", "ring", "ll128".
std::string_view name_of(CollectiveKind kind);
std::string_view name_of(CollectiveAlgorithm algorithm);
std::string_view name_of(CollectiveProtocol protocol);

/// Nothing for an unknown name. NCCL's spellings count too: "AllReduce", "NVLSTree", "Simple".
std::optional<CollectiveKind> collective_kind_of(std::string_view name);
std::optional<CollectiveAlgorithm> collective_algorithm_of(std::string_view name);
std::optional<CollectiveProtocol> collective_protocol_of(std::string_view name);

}  // namespace tessera
