#include "app/html/page.h"

#include <algorithm>

namespace tessera {
namespace {

/// Members of a document that charts are drawn of.
constexpr const char* kChartMembers[] = {"memory", "links",   "roofline",
                                         "points", "scatter", "live"};

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

bool has_charts(const nlohmann::ordered_json& document) {
  return std::ranges::any_of(kChartMembers, [&](const char* member) {
    return document.contains(member) && !document[member].is_null();
  });
}

std::string script_of(const PagePart& part) {
  return "<script>" + std::string(part.text) + "</script>\n";
}

std::string source_of(const PagePart& part) {
  return " '" + std::string(part.hash) + "'";
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& document, const PagePart& charts,
                      PageReach reach) {
  const bool drawn = !charts.text.empty() && has_charts(document);
  const std::string policy = "default-src 'none'; script-src" +
                             (drawn ? source_of(charts) : std::string()) + source_of(kPageScript) +
                             "; style-src" + source_of(kPageStyle) +
                             (reach == PageReach::own_server ? "; connect-src 'self'" : "") +
                             "; base-uri 'none'; form-action 'none'";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         policy +
         "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>Tessera</title>\n"
         "<style>" +
         std::string(kPageStyle.text) + "</style>\n</head>\n<body>\n<main id=\"main\"></main>\n" +
         "<noscript>This report draws itself with a script.</noscript>\n"
         "<script type=\"application/json\" id=\"data\">" +
         inert(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) +
         "</script>\n" + (drawn ? script_of(charts) : std::string()) + script_of(kPageScript) +
         "</body>\n</html>\n";
}

}  // namespace tessera
