#include "app/serve/server.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/serve/connection.h"
#include "app/serve/guard.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr int kGlance = 200;  // ms between two looks at is_over()
constexpr int kWaiting = 16;  // connections

/// A file descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  ~Socket() {
    if (number_ >= 0) close(number_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

[[noreturn]] void refuse_port(int port) {
  throw InputError({.where = "--port",
                    .what = std::to_string(port) +
                            " of this machine cannot be listened on: " + std::strerror(errno),
                    .hint = "take another one, or 0 for any that is free"});
}

/// Listens on 127.0.0.1; `port` becomes the one that was given.
int listening_socket(int& port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) refuse_port(port);
  const int yes = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (bind(socket.number(), plain, length) != 0 || listen(socket.number(), kWaiting) != 0 ||
      getsockname(socket.number(), plain, &length) != 0)
    refuse_port(port);
  port = ntohs(address.sin_port);
  return socket.release();
}

/// The processes that answer, oldest first; each leads a group that its simulation belongs to.
class Answerers {
 public:
  explicit Answerers(int most) : most_(static_cast<std::size_t>(most)) {}
  ~Answerers() {
    while (!groups_.empty()) end_oldest();
  }
  Answerers(const Answerers&) = delete;
  Answerers& operator=(const Answerers&) = delete;

  void add(pid_t process) {
    setpgid(process, process);  // the child does so too: whoever comes first
    groups_.push_back(process);
  }
  void forget_ended() {
    std::erase_if(groups_, [](pid_t process) { return waitpid(process, nullptr, WNOHANG) != 0; });
  }
  void make_room() {
    forget_ended();
    while (groups_.size() >= most_) end_oldest();
  }

 private:
  void end_oldest() {
    kill(-groups_.front(), SIGKILL);
    waitpid(groups_.front(), nullptr, 0);
    groups_.pop_front();
  }

  std::size_t most_;
  std::deque<pid_t> groups_;
};

/// Answers one connection in a process of its own.
void answer_in_child(int listening, int connection, int port, const std::string& token,
                     const Answer& answer, Answerers& answerers) {
  const pid_t process = fork();
  if (process > 0) answerers.add(process);
  if (process != 0) return;
  setpgid(0, 0);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
  close(listening);
  answer_connection(connection, port, token, answer);
  _exit(0);
}

}  // namespace

void serve(const ServeOptions& options, const Answer& answer,
           const std::function<void(const std::string& url)>& on_ready,
           const std::function<bool()>& is_over) {
  int port = options.port;
  const Socket listening(listening_socket(port));
  const std::string token = random_token();
  Answerers answerers(options.most_answers);
  on_ready("http://127.0.0.1:" + std::to_string(port) + "/?token=" + token);
  while (!is_over()) {
    answerers.forget_ended();
    pollfd waiting{.fd = listening.number(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kGlance) <= 0) continue;
    const Socket connection(accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.number() < 0) continue;
    answerers.make_room();
    answer_in_child(listening.number(), connection.number(), port, token, answer, answerers);
  }
}

}  // namespace tessera
