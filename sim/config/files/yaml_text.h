#pragma once

#include <string>

#include "sim/config/files/yaml_tree.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace tessera {

/// What to write in YAML for a field that is no section: "80 GiB", "one_f_one_b". `index` counts in
/// lists.
std::string scalar_text(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field, int index = 0);

/// The message as a tree at `mark`, that binds to an equal message. Fields that are empty and have
/// no documented default are left out.
YamlNode to_tree(const google::protobuf::Message& message, const Mark& mark);

/// A tree as a YAML document.
std::string to_yaml(const YamlNode& tree);

/// The message as a YAML document.
std::string to_yaml(const google::protobuf::Message& message);

}  // namespace tessera
