#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/html/page_source.h"

namespace tessera {

/// What a page may ask for: nothing, or answers of the server that it came from.
enum class PageReach { nothing, own_server };

/// A self-contained HTML file that draws `document` (what it may hold: docs/html_report.md). It
/// requests nothing: its policy allows its own scripts and style, by hash, and no other source.
/// Whatever the document's texts hold, they are data: in the file `<`, `>` and `&` are escaped, and
/// the script makes text nodes of them, or text on a canvas. Equal documents give equal bytes.
/// `charts` is in pages that have charts to draw; where it is empty, they say what is missing.
/// `reach` is what else it may ask for.
std::string html_page(const nlohmann::ordered_json& document,
                      const PagePart& charts = kChartLibrary, PageReach reach = PageReach::nothing);

}  // namespace tessera
