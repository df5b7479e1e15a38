#include "sim/process/command.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tessera {
namespace {

[[noreturn]] void fail_to_run(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// In the child: never returns.
[[noreturn]] void become(const std::vector<std::string>& arguments, int output, int errors) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  execvp(argv.front(), argv.data());
  _exit(127);
}

/// Reads both ends until both are closed.
void read_both(std::array<pollfd, 2>& ends, CommandResult& result) {
  const std::array<std::string*, 2> texts = {&result.output, &result.errors};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) fail_to_run("poll");
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t count = read(ends[i].fd, buffer.data(), buffer.size());
      if (count > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
      if (count > 0 || (count < 0 && errno == EINTR)) continue;
      close(ends[i].fd);
      ends[i].fd = -1;
    }
  }
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments) {
  std::array<int, 2> output{}, errors{};
  if (pipe2(output.data(), O_CLOEXEC) != 0 || pipe2(errors.data(), O_CLOEXEC) != 0)
    fail_to_run("pipe");
  const pid_t child = fork();
  if (child < 0) fail_to_run("fork");
  if (child == 0) become(arguments, output[1], errors[1]);
  close(output[1]);
  close(errors[1]);
  std::array<pollfd, 2> ends = {{{output[0], POLLIN, 0}, {errors[0], POLLIN, 0}}};
  CommandResult result;
  read_both(ends, result);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail_to_run("waitpid");
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tessera
