#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// An answer over HTTP.
struct ServedAnswer {
  std::string type;  ///< "text/html"
  std::string body;
  std::string policy = {};   ///< header Content-Security-Policy; empty: nothing is allowed
  std::string save_as = {};  ///< a name to save it under; empty: it is shown
};

/// The parameters of a request but the token, in order.
using RequestParameters = std::vector<std::pair<std::string, std::string>>;

/// Answers a path; empty type: there is no such path. Called in a process of its own, which may
/// end in any way without harm to the server.
using Answer = std::function<ServedAnswer(const std::string& path, const RequestParameters&)>;

struct ServeOptions {
  int port = 0;          ///< 0: any that is free
  int most_answers = 4;  ///< at work at a time; one more ends the oldest
};

/// Answers GET requests on 127.0.0.1 until `is_over()`, each in a process of its own; `on_ready`
/// gets the address with its token before the first. Requests without the token, for another host
/// or from another page are refused with 403. Throws InputError where the port cannot be had.
void serve(const ServeOptions& options, const Answer& answer,
           const std::function<void(const std::string& url)>& on_ready,
           const std::function<bool()>& is_over);

}  // namespace tessera
