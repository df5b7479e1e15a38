#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tessera {

/// JSON with Python's NaN, Infinity and -Infinity, which are no JSON, as texts: "NaN". What lies
/// within texts stays.
std::string with_quoted_specials(std::string_view json);

/// Line of every key of nested objects under its dotted path ("attn_config.alibi"), four objects
/// deep at most. Lists have no path: what lies in one is left out. Of a text that is no JSON, some.
std::map<std::string, int> lines_of_keys(std::string_view json);

}  // namespace tessera
