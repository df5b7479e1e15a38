#pragma once

// Training programs whose command lines and files are not read.
#include <optional>
#include <string>

#include "app/import/shell/shell_words.h"
#include "hw/units/input_error.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Which program a file is for that nobody reads here, and what to give instead; nothing where no
/// key tells.
std::optional<Problem> problem_of_foreign_file(const YamlNode& tree);

/// Which program that nobody reads here a script starts, and what to give instead; nothing where it
/// starts none.
std::optional<Problem> problem_of_foreign_program(const ShellScript& script,
                                                  const std::string& name);

}  // namespace tessera
