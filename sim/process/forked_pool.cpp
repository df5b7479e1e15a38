#include "sim/process/forked_pool.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include <poll.h>

namespace tessera {
namespace {

/// Longer limits than a year would overflow the clock.
constexpr double kLongestSeconds = 3e7;

/// Of calls that share a process, together: many forks' time, and not long to wait for at the end.
constexpr double kSecondsPerProcess = 0.25;
constexpr double kMostCallsPerProcess = 64;
/// Of calls of which none has ended, so that nobody knows how long they take.
constexpr std::size_t kMostUnknownCalls = 4;

}  // namespace

ForkedPool::ForkedPool(int jobs, std::chrono::duration<double> limit, std::function<bool()> goes_on)
    : jobs_(static_cast<std::size_t>(jobs)),
      limit_(std::chrono::duration_cast<Clock::duration>(
          std::min(limit, std::chrono::duration<double>(kLongestSeconds)))),
      goes_on_(std::move(goes_on)) {
  assert(jobs >= 1);
}

std::size_t ForkedPool::calls_per_process() const {
  if (!goes_on_) return 1;
  if (ended_ == 0) return std::clamp<std::size_t>(share_, 1, kMostUnknownCalls);
  const double each = std::max(busy_.count() / static_cast<double>(ended_), 1e-6);
  const double quick = std::clamp(kSecondsPerProcess / each, 1.0, kMostCallsPerProcess);
  const auto calls = static_cast<std::size_t>(quick);
  return share_ > 0 ? std::min(calls, share_) : calls;
}

void ForkedPool::start(std::size_t id, std::function<std::string()> call) {
  assert(!full());
  waiting_.push_back({id, std::move(call)});
  if (waiting_.size() >= calls_per_process()) fork_waiting();
}

void ForkedPool::fork_waiting() {
  while (!waiting_.empty() && running_.size() < jobs_) {
    const auto end = waiting_.begin() +
                     static_cast<std::ptrdiff_t>(std::min(waiting_.size(), calls_per_process()));
    std::vector<ForkedCall> calls(std::make_move_iterator(waiting_.begin()),
                                  std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    fork(std::move(calls));
  }
}

void ForkedPool::fork(std::vector<ForkedCall> calls) {
  ForkedProcess process(calls, goes_on_);
  running_.push_back({std::move(calls), std::move(process), Clock::now()});
}

int ForkedPool::milliseconds_to_wait(std::optional<std::chrono::duration<double>> patience) const {
  const auto first = std::ranges::min_element(running_, {}, &Running::since);
  double seconds = std::chrono::duration<double>(first->since + limit_ - Clock::now()).count();
  if (patience) seconds = std::min(seconds, patience->count());
  // Rounded up: waking too early would only wait again.
  return static_cast<int>(std::clamp(seconds, 0.0, 1e6) * 1e3) + 1;
}

EndedCall ForkedPool::ended_call(Running& running, EndedCall::How how, std::string text) {
  const Clock::time_point now = Clock::now();
  const EndedCall ended{running.current(), how, std::move(text), now - running.since};
  busy_ += ended.took;
  ++ended_;
  ++running.answered;
  running.since = now;
  return ended;
}

bool ForkedPool::take_answers(Running& running, std::vector<EndedCall>& ended) {
  const bool open = running.process.read_some();
  while (std::optional<CallOutcome> answer = running.process.next_answer()) {
    auto how = answer->returned ? EndedCall::How::returned : EndedCall::How::failed;
    if (Clock::now() - running.since > limit_) how = EndedCall::How::timed_out;
    ended.push_back(ended_call(running, how, std::move(answer->text)));
  }
  if (open) return true;
  std::string problem = running.process.end();
  const bool told_to = problem.empty() && running.answered > 0;
  if (told_to || running.has_answered_all()) return false;
  if (problem.empty()) problem = "the process ended without a result, with exit code 0";
  ended.push_back(ended_call(running, EndedCall::How::failed, std::move(problem)));
  return false;
}

void ForkedPool::replace(std::list<Running>::iterator running) {
  const auto rest = running->calls.begin() + static_cast<std::ptrdiff_t>(running->answered);
  std::vector<ForkedCall> calls(std::make_move_iterator(rest),
                                std::make_move_iterator(running->calls.end()));
  running_.erase(running);
  if (!calls.empty()) fork(std::move(calls));
}

void ForkedPool::take_overdue(std::vector<EndedCall>& ended) {
  const Clock::time_point started_by = Clock::now() - limit_;
  for (std::size_t left = running_.size(), next = 0; left > 0; --left) {
    const auto running = std::next(running_.begin(), static_cast<std::ptrdiff_t>(next));
    if (running->since > started_by || running->has_answered_all()) {
      ++next;
      continue;
    }
    ended.push_back(ended_call(*running, EndedCall::How::timed_out, ""));
    replace(running);
  }
}

std::vector<EndedCall> ForkedPool::wait(std::optional<std::chrono::duration<double>> patience) {
  assert(!empty());
  fork_waiting();
  std::vector<pollfd> descriptors;
  for (const Running& running : running_)
    descriptors.push_back({running.process.descriptor(), POLLIN, 0});
  const int ready = poll(descriptors.data(), descriptors.size(), milliseconds_to_wait(patience));
  if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
  std::vector<EndedCall> ended;
  auto running = running_.begin();
  for (const pollfd& descriptor : descriptors) {
    const auto current = running++;
    if (ready <= 0 || descriptor.revents == 0 || take_answers(*current, ended)) continue;
    replace(current);
  }
  take_overdue(ended);
  if (!ended.empty() || patience || empty()) return ended;
  return wait();
}

}  // namespace tessera
