#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// "section.field"; just the name at the top.
std::string joined_path(const std::string& section, const std::string& name);

/// The names between the dots; an empty path is one empty name.
std::vector<std::string> split_path(std::string_view path);

}  // namespace tessera
