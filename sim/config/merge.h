#pragma once

#include "sim/config/files/yaml_tree.h"

namespace google::protobuf {
class Descriptor;
}

namespace tessera {

/// Renames the keys of a section to the schema's names, in the sections below it too.
void use_schema_names(YamlNode& section, const google::protobuf::Descriptor& type);

/// `changes` over `base`, both sections of type `type` under schema names: fields of `changes`
/// win, sections merge field by field, a changed reference becomes a section that extends it.
YamlNode merge_sections(YamlNode base, YamlNode changes, const google::protobuf::Descriptor& type);

/// A section that only says `extends: reference`.
YamlNode extending(YamlNode reference);

}  // namespace tessera
