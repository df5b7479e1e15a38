#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Documentation of a field or section of a scenario ("parallelism.tensor", "cluster.node.gpu"; ""
/// is the scenario itself): type, unit, range, default, accepted values. Throws InputError for an
/// unknown path.
std::string explain(std::string_view path);

/// The word of an enumeration's value: `value_word("cluster.node.gpu.form_factor", 2)` is "sxm".
/// Throws InputError for an unknown path; requires a field of an enumeration that has the value.
std::string value_word(std::string_view path, int value);

/// The paths of all fields of a scenario that hold one value, as "training.micro_batch".
std::vector<std::string> field_paths();

/// Those whose name, or a word that stands for it, is `word`: "tp".
std::vector<std::string> paths_of_fields_called(std::string_view word);

/// JSON Schema (draft 2020-12) of a scenario file, for editors.
std::string json_schema();

}  // namespace tessera
