#pragma once

#include <span>
#include <string>
#include <vector>

#include "hw/node.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

// A measured row becomes settings, "path=value" as after --set, which the loader of scenarios
// reads.

/// `text` in quotes, as YAML has it.
std::string quoted(const std::string& text);

/// The shortest text that reads back as `number`, bit by bit.
std::string exact_text(double number);

/// A cluster of one node that nobody described: what box_of() and single_gpu_cluster() say of it.
/// `gpu` is what the row calls its GPU: an id or a file.
std::vector<std::string> settings_of_node(const NodeSpec& node, const std::string& gpu);

/// The scenario that consists of `settings` and defaults. Throws InputError with every problem at
/// `where`; one that some of `own`, the settings that the row itself states, causes names it.
Scenario scenario_of_row(std::span<const std::string> settings, std::span<const std::string> own,
                         const std::string& where, const Catalog& catalog);

}  // namespace tessera
