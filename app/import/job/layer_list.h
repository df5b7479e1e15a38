#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// What Megatron's options for layers mean: numbers and lists of Python, such as "3", "[1,1,0]",
/// "([0]*3+[1]*58)". One entry per layer; nothing for what is neither, or is longer than 10,000.
std::optional<std::vector<int>> python_list(const std::string& text);

/// Entries of `text` for `layers` layers: a list as it is, of a number n every n-th entry 0
/// (`last`) or the first of n 1.
std::optional<std::vector<int>> layer_flags(const std::string& text, std::int64_t layers,
                                            bool last);

/// The whole number that `text` is; nothing for others.
std::optional<std::int64_t> whole_number(const std::string& text);

}  // namespace tessera
