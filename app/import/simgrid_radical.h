#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Numbers of "0-3,7": SimGrid's radical. Nothing for anything else and beyond `most` numbers.
std::optional<std::vector<int>> simgrid_radical(const std::string& text, std::size_t most);

}  // namespace tessera
