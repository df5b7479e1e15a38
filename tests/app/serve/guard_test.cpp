#include "app/serve/guard.h"

#include <gtest/gtest.h>

#include "app/serve/connection.h"

namespace tessera {
namespace {

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";
constexpr RequestOrigin kOwnPage{.token = kToken,
                                 .host = "127.0.0.1:8000",
                                 .origin = "http://127.0.0.1:8000",
                                 .fetch_site = "same-origin"};

bool is_refused(const RequestOrigin& from) {
  return refusal(from, kToken, 8000).has_value();
}

TEST(Guard, ThePageOfTheServerIsAnswered) {
  EXPECT_FALSE(is_refused(kOwnPage));
  EXPECT_FALSE(is_refused({.token = kToken, .host = "localhost:8000"}));  // no browser
}

TEST(Guard, AWrongTokenIsRefusedWhateverItsLength) {
  for (const std::string_view token : {std::string_view(), kToken.substr(1),
                                       std::string_view("0123456789abcdef0123456789abcdee")}) {
    RequestOrigin from = kOwnPage;
    from.token = token;
    EXPECT_TRUE(is_refused(from)) << token;
  }
}

TEST(Guard, ANameThatOnlyResolvesToThisMachineIsRefused) {
  for (const char* host :
       {"", "evil.example:8000", "127.0.0.1:8001", "127.0.0.1", "127.0.0.1:80000"}) {
    RequestOrigin from = kOwnPage;
    from.host = host;
    EXPECT_TRUE(is_refused(from)) << host;
  }
}

TEST(Guard, AnotherPageIsRefused) {
  for (const char* origin :
       {"null", "https://127.0.0.1:8000", "http://127.0.0.1:8001", "http://evil.example"}) {
    RequestOrigin from = kOwnPage;
    from.origin = origin;
    EXPECT_TRUE(is_refused(from)) << origin;
  }
  RequestOrigin from = kOwnPage;
  from.fetch_site = "same-site";  // another port of this machine
  EXPECT_TRUE(is_refused(from));
}

TEST(Guard, TokensDiffer) {
  const std::string token = random_token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_NE(token, random_token());
}

TEST(UrlDecoded, EscapesBecomeBytesAndTheRestStays) {
  EXPECT_EQ(url_decoded("a%20b+c%3Dd"), "a b c=d");
  EXPECT_EQ(url_decoded("100%"), "100%");
  EXPECT_EQ(url_decoded("%zz%4"), "%zz%4");
}

}  // namespace
}  // namespace tessera
