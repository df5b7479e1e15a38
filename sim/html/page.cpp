#include "sim/html/page.h"

#include "sim/html/page_source.h"

namespace tessera {
namespace {

/// JSON that no HTML parser can take for markup: "</script>" and "<!--" end or change a script
/// element wherever they stand.
std::string inert(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += c;
    }
  }
  return text;
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& document) {
  const std::string policy = "default-src 'none'; script-src '" + kPageScriptHash +
                             "'; style-src '" + kPageStyleHash +
                             "'; base-uri 'none'; form-action 'none'";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         policy +
         "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>Tessera</title>\n"
         "<style>" +
         kPageStyle + "</style>\n</head>\n<body>\n<main id=\"main\"></main>\n" +
         "<noscript>This report draws itself with a script.</noscript>\n"
         "<script type=\"application/json\" id=\"data\">" +
         inert(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) +
         "</script>\n<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace tessera
