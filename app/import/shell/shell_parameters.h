#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/import/shell/shell_state.h"

namespace tessera {

/// "NAME[key]" with a key whose arithmetic is done.
std::string element_name(const std::string& variable, const std::string& key,
                         const ShellState& state);

/// The value of "NAME[key]": of an associative array, else of a list by number.
std::optional<std::vector<std::string>> element_of(const std::string& element,
                                                   const ShellState& state);

/// What ${NAME<change>} makes of a value (nothing: unset): defaults, cut ends, replaced parts,
/// parts by place, upper and lower case. Nothing where that cannot be told. `expanded` expands the
/// texts in `change`.
std::optional<std::vector<std::string>> changed_value(
    const std::optional<std::vector<std::string>>& value, std::string_view change,
    const std::function<std::string(const std::string&)>& expanded);

}  // namespace tessera
