#pragma once

#include <string>
#include <vector>

#include "app/import/shell/shell_words.h"

namespace tessera {

/// Variables of the environment that a script sets and no scenario has.
struct LeftOutVariables {
  std::vector<std::string> of_time;    ///< a step may take longer or shorter: an approximation
  std::vector<std::string> of_memory;  ///< what the allocator reserves may differ a little
};
LeftOutVariables left_out_variables(const ShellScript& script);

/// What `name` is set to ahead of a command ("NAME=VALUE torchrun ...") or by the script; empty: it
/// is not set, or to one of several values.
std::string environment_value(const std::string& name, const ShellScript& script);

}  // namespace tessera
