#pragma once

#include <string>
#include <vector>

#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// What an axis runs through: a list as it is, or a range. {from: 1, to: 64, times: 2} doubles,
/// {from: 1024, to: 8192, step: 1024} adds; `to` is included where the steps meet it. Throws
/// InputError whose `what` continues the axis' name.
std::vector<YamlNode> axis_values(const YamlNode& axis);

/// A value on one line, as YAML: "8", "{extends: gpt2, layers: 24}".
std::string one_line(const YamlNode& value);

/// Shortest text that reads back as `number`; whole ones without a point.
std::string plain_number(double number);

}  // namespace tessera
