#include "sim/process/forked_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/process/late_load.h"

namespace tessera {
namespace {

// First byte of an answer.
constexpr char kReturned = 'R';
constexpr char kThrew = 'E';

// Exit codes of a child.
constexpr int kDone = 0;
constexpr int kUnread = 1;   ///< nobody took its answers
constexpr int kLoaded = 87;  ///< done, and LateLoad is loaded in it

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string answer_of(const std::function<std::string()>& call) {
  char mark = kThrew;
  std::string text = "an exception without a text";
  try {
    text = call();
    mark = kReturned;
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
  }
  const std::size_t size = text.size();
  std::string answer(1, mark);
  answer.append(reinterpret_cast<const char*>(&size), sizeof size);
  return answer += text;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool was_loaded_late = false;  ///< in a child of this process

bool is_loaded() {
  return late_load().is_loaded != nullptr && late_load().is_loaded();
}

int exit_code_of_child(bool sent) {
  if (!sent) return kUnread;
  return is_loaded() ? kLoaded : kDone;
}

std::string ended_with(int exit_code) {
  return "the process ended without a result, with exit code " + std::to_string(exit_code);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw_system_error("waitpid");
  }
  return status;
}

}  // namespace

ForkedProcess::ForkedProcess(std::span<const ForkedCall> calls,
                             const std::function<bool()>& goes_on) {
  if (was_loaded_late && !is_loaded()) late_load().load();
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw_system_error("pipe");
  child_ = fork();
  if (child_ == 0) {
    // Nobody would read the answers of a child that outlives its parent.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    bool sent = true;
    for (const ForkedCall& call : calls) {
      if (&call != &calls.front() && !goes_on()) break;
      sent = sent && write_all(ends[1], answer_of(call.call));
    }
    // Without the parent's exit handlers and buffered output, which are the parent's to run.
    _exit(exit_code_of_child(sent));
  }
  close(ends[1]);
  read_end_ = ends[0];
  if (child_ < 0) {
    close(read_end_);
    throw_system_error("fork");
  }
}

ForkedProcess::ForkedProcess(ForkedProcess&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      read_end_(std::exchange(other.read_end_, -1)),
      received_(std::move(other.received_)) {}

ForkedProcess::~ForkedProcess() {
  if (read_end_ >= 0) close(read_end_);
  if (child_ < 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

bool ForkedProcess::read_some() {
  std::array<char, 65536> buffer;
  const ssize_t count = read(read_end_, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count < 0) throw_system_error("read");
  received_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<CallOutcome> ForkedProcess::next_answer() {
  std::size_t size = 0;
  if (received_.size() < 1 + sizeof size) return std::nullopt;
  std::memcpy(&size, received_.data() + 1, sizeof size);
  const std::size_t begin = 1 + sizeof size;
  if (received_.size() - begin < size) return std::nullopt;
  CallOutcome answer{received_.front() == kReturned, received_.substr(begin, size)};
  received_.erase(0, begin + size);
  return answer;
}

std::string ForkedProcess::end() {
  const int status = wait_for(std::exchange(child_, -1));
  if (WIFSIGNALED(status)) {
    return "the process ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  was_loaded_late = was_loaded_late || WEXITSTATUS(status) == kLoaded;
  const bool done = WEXITSTATUS(status) == kDone || WEXITSTATUS(status) == kLoaded;
  const bool by_itself = done && received_.empty();
  if (by_itself) return "";
  return ended_with(WEXITSTATUS(status));
}

}  // namespace tessera
