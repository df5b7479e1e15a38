#pragma once

#include <string>

#include "app/import/job/foreign_fields.h"

namespace tessera {

/// The values of a TOML document under dotted names: "parallelism.tensor_parallel_degree". Lists of
/// values are one value each, "a,b". Throws InputError with file and line where it is no TOML.
ForeignFields toml_fields(const std::string& text, const std::string& name);

}  // namespace tessera
