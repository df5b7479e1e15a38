#pragma once

#include <span>
#include <string>

#include "sim/config/catalog.h"
#include "sim/config/files/yaml_file_cache.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/config/problem_list.h"
#include "sim/config/scenario_source.h"

namespace google::protobuf {
class Descriptor;
}

namespace tessera {

/// Replaces every reference in `root`, a section of type `type`, by what it refers to. A reference
/// is an id or a file where the schema has a section with a catalog, or `extends: id or file` in
/// such a section, whose own fields then win over those of the referred one. Keys become the
/// schema's names (aliases resolved). What cannot be found becomes `broken` and a problem.
YamlNode resolve(YamlNode root, const google::protobuf::Descriptor& type, const Catalog& catalog,
                 ProblemList& problems);
/// The same with files from `files`.
YamlNode resolve(YamlNode root, const google::protobuf::Descriptor& type, const Catalog& catalog,
                 YamlFileCache& files, ProblemList& problems);

/// The tree of one reference, resolved: an id of the catalog of `type`, or a file.
YamlNode resolve_reference(const std::string& id_or_file, const google::protobuf::Descriptor& type,
                           const Catalog& catalog, ProblemList& problems);

/// Writes "path=value" settings into `root`, before its references are resolved: the later one
/// wins, and a field set inside a reference turns that into `extends`. Values are YAML. Malformed
/// settings become problems.
void apply_overrides(YamlNode& root, std::span<const std::string> overrides,
                     const google::protobuf::Descriptor& type, ProblemList& problems);
/// The same for settings that were read from a file.
void apply_settings(YamlNode& root, std::span<const FieldSetting> settings,
                    const google::protobuf::Descriptor& type, ProblemList& problems);

}  // namespace tessera
