#pragma once

#include <string_view>

namespace tessera {

/// The text between <style> or <script> and its end, and what a content security policy calls it
/// ("sha256-...").
struct PagePart {
  std::string_view text;
  std::string_view hash;
};

/// What tools/embed_page makes of app/html/page and of the bundle that tools/bundle_charts makes.
extern const PagePart kPageStyle;
extern const PagePart kPageScript;
extern const PagePart kChartLibrary;  ///< empty in a build without charts

}  // namespace tessera
