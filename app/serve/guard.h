#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// What of a request says who sends it; empty where it does not say.
struct RequestOrigin {
  std::string_view token;       ///< of the URL or the header
  std::string_view host;        ///< header Host
  std::string_view origin;      ///< header Origin: the page that sends it
  std::string_view fetch_site;  ///< header Sec-Fetch-Site, of browsers
};

/// A word that nobody guesses: 128 bits from the system, in hexadecimal digits.
std::string random_token();

/// Why a request must not be answered; empty where it comes from the page of this server. A name
/// other than this machine's own in Host is a page elsewhere that resolved its own name to this
/// machine; another Origin is a page elsewhere.
std::optional<std::string> refusal(const RequestOrigin& from, std::string_view token, int port);

}  // namespace tessera
