#pragma once

#include <string>

namespace tessera {

/// What tools/embed_page makes of sim/html/page: the texts between <style> and <script>, and what a
/// content security policy calls them ("sha256-...").
extern const std::string kPageStyle;
extern const std::string kPageScript;
extern const std::string kPageStyleHash;
extern const std::string kPageScriptHash;

}  // namespace tessera
