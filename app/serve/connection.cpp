#include "app/serve/connection.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <exception>

#include "app/serve/guard.h"

namespace tessera {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr auto kPatience = std::chrono::seconds(5);  // to read a request
constexpr auto kSending = std::chrono::seconds(30);
constexpr std::size_t kLongestRequest = 64 * 1024;  // bytes

std::string_view view_of(beast::string_view text) {
  return {text.data(), text.size()};
}

struct Target {
  std::string path;
  std::string token;
  RequestParameters parameters;
};

/// "/step?token=...&set=a%3Db"
Target target_of(std::string_view text) {
  Target target;
  const std::size_t question = text.find('?');
  target.path = url_decoded(text.substr(0, question));
  std::string_view rest = question == std::string_view::npos ? "" : text.substr(question + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equal = std::min(part.find('='), part.size());
    const std::string name = url_decoded(part.substr(0, equal));
    const std::string value = url_decoded(part.substr(std::min(equal + 1, part.size())));
    if (name == "token")
      target.token = value;
    else
      target.parameters.emplace_back(name, value);
  }
  return target;
}

Response plain(http::status status, const std::string& text) {
  Response response(status, 11);
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.body() = text + "\n";
  return response;
}

Response response_to(const Request& request, int port, const std::string& token,
                     const Answer& answer) {
  const Target target = target_of(view_of(request.target()));
  const std::string_view header = view_of(request["X-Tessera-Token"]);
  const RequestOrigin from{.token = header.empty() ? std::string_view(target.token) : header,
                           .host = view_of(request[http::field::host]),
                           .origin = view_of(request[http::field::origin]),
                           .fetch_site = view_of(request["Sec-Fetch-Site"])};
  if (const auto why = refusal(from, token, port)) return plain(http::status::forbidden, *why);
  if (request.method() != http::verb::get)
    return plain(http::status::method_not_allowed, "only GET is answered");
  const ServedAnswer served = answer(target.path, target.parameters);
  if (served.type.empty()) return plain(http::status::not_found, "there is no such page");
  Response response(http::status::ok, 11);
  response.set(http::field::content_type, served.type + "; charset=utf-8");
  response.set("Content-Security-Policy",
               served.policy.empty() ? "default-src 'none'" : served.policy);
  if (!served.save_as.empty())
    response.set(http::field::content_disposition,
                 "attachment; filename=\"" + served.save_as + "\"");
  response.body() = served.body;
  return response;
}

void send(beast::tcp_stream& stream, boost::asio::io_context& context, Response response) {
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.keep_alive(false);
  response.prepare_payload();
  stream.expires_after(kSending);
  http::async_write(stream, response, [](beast::error_code, std::size_t) {});
  context.restart();
  context.run();
}

}  // namespace

std::string url_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(&text[i + 1], &text[i + 3], value, 16).ptr == &text[i + 3];
    decoded += escape ? static_cast<char>(value) : text[i] == '+' ? ' ' : text[i];
    if (escape) i += 2;
  }
  return decoded;
}

void answer_connection(int socket, int port, const std::string& token, const Answer& answer) {
  boost::asio::io_context context;
  beast::tcp_stream stream(tcp::socket(context, tcp::v4(), socket));
  beast::flat_buffer buffer;
  http::request_parser<http::string_body> parser;
  parser.header_limit(kLongestRequest);
  parser.body_limit(kLongestRequest);
  beast::error_code failure;
  stream.expires_after(kPatience);
  http::async_read(stream, buffer, parser,
                   [&](beast::error_code error, std::size_t) { failure = error; });
  context.run();
  if (failure) return;
  try {
    send(stream, context, response_to(parser.get(), port, token, answer));
  } catch (const std::exception& error) {
    send(stream, context, plain(http::status::internal_server_error, error.what()));
  }
}

}  // namespace tessera
