#include "app/serve/guard.h"

#include <array>
#include <random>

namespace tessera {
namespace {

/// In a time that does not say how much of it is right.
bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

bool is_this_machine(std::string_view host, int port) {
  const std::string end = ":" + std::to_string(port);
  return host == "127.0.0.1" + end || host == "localhost" + end;
}

}  // namespace

std::string random_token() {
  std::random_device device;  // of the system: /dev/urandom or its like
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = device();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) token += kDigits[bits & 15];
  }
  return token;
}

std::optional<std::string> refusal(const RequestOrigin& from, std::string_view token, int port) {
  if (!is_this_machine(from.host, port)) return "the host is not this machine's own";
  constexpr std::string_view kScheme = "http://";
  if (!from.origin.empty() && !(from.origin.starts_with(kScheme) &&
                                is_this_machine(from.origin.substr(kScheme.size()), port)))
    return "another page asks";
  if (!from.fetch_site.empty() && from.fetch_site != "same-origin" && from.fetch_site != "none")
    return "another page asks";
  if (!are_equal(from.token, token))
    return "the token is missing or wrong: open the address that tessera serve printed";
  return std::nullopt;
}

}  // namespace tessera
