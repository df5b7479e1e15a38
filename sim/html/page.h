#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tessera {

/// A self-contained HTML file that draws `document` (what it may hold: docs/html_report.md). It
/// requests nothing: its policy allows its own script and style, by hash, and no other source.
/// Whatever the document's texts hold, they are data: in the file `<`, `>` and `&` are escaped, and
/// the script makes text nodes of them. Equal documents give equal bytes.
std::string html_page(const nlohmann::ordered_json& document);

}  // namespace tessera
