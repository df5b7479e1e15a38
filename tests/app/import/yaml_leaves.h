#pragma once

#include <map>
#include <string>

#include "sim/config/files/yaml_tree.h"

namespace tessera::test {

/// The scalars of `node` by dotted path; lists are left out.
inline std::map<std::string, std::string> leaves_of(const YamlNode& node,
                                                    const std::string& path = "") {
  std::map<std::string, std::string> leaves;
  if (node.kind == YamlNode::Kind::scalar) leaves[path] = node.text;
  for (const YamlEntry& entry : node.entries)
    leaves.merge(leaves_of(entry.value, path.empty() ? entry.key : path + "." + entry.key));
  return leaves;
}

}  // namespace tessera::test
