#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What a term of the answers means ("MFU", "bubble"), whatever its case and with spaces or
/// underscores between its words; empty for others.
std::optional<std::string> term_text(std::string_view term);

/// The terms that term_text() knows; known_terms() as one text.
std::vector<std::string> term_names();
std::string known_terms();

}  // namespace tessera
