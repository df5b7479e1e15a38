#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/html/page_source.h"

namespace tessera {

/// A self-contained HTML file that draws `document` (what it may hold: docs/html_report.md). It
/// requests nothing: its policy allows its own scripts and style, by hash, and no other source.
/// Whatever the document's texts hold, they are data: in the file `<`, `>` and `&` are escaped, and
/// the script makes text nodes of them, or text on a canvas. Equal documents give equal bytes.
/// `charts` is in pages that have charts to draw; where it is empty, they say what is missing.
std::string html_page(const nlohmann::ordered_json& document,
                      const PagePart& charts = kChartLibrary);

}  // namespace tessera
