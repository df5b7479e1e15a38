#pragma once

#include <map>
#include <string>

#include "sim/config/files/yaml_tree.h"
#include "sim/config/problem_list.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace tessera {

/// Where each field that was given stands, by path.
using FieldMarks = std::map<std::string, Mark>;

/// Writes a resolved tree (sim/config/resolve.h) into `message` by reflection over its schema and
/// adds every problem to `problems`; what has a problem keeps its default. Returns the places of
/// the fields.
FieldMarks bind(const YamlNode& root, google::protobuf::Message& message, ProblemList& problems);

/// Why a value cannot be a field's; completes the sentence "path = value ...".
struct ValueFault {
  std::string what;
  std::string hint;
};

/// Sets a field that is no section (or adds to a list of such) from a scalar; returns what is wrong
/// with it, `what` empty if nothing is.
ValueFault bind_scalar(const YamlNode& scalar, const google::protobuf::FieldDescriptor& field,
                       google::protobuf::Message& message);

}  // namespace tessera
