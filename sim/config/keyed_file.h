#pragma once

#include <string>
#include <vector>

#include "sim/config/files/yaml_tree.h"
#include "sim/config/problem_list.h"

namespace tessera {

/// What the readers of small YAML files of named keys share: all that is wrong is collected in
/// `problems_`, each with its place.
class KeyedFileReader {
 protected:
  void add(const Mark& mark, std::string what, std::string hint);

  /// Problems of keys that are not known or stand twice.
  void check_keys(const YamlNode& node, const std::vector<std::string>& known);

  /// A scalar; null where the key is missing, and with a problem where it holds something else.
  const YamlNode* value(const YamlNode& node, const std::string& key);

  ProblemList problems_;
};

}  // namespace tessera
