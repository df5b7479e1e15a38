#include "sim/process/forked_pool.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include <poll.h>

#include "sim/process/forked_call.h"

namespace tessera {
namespace {

/// Longer limits than a year would overflow the clock.
constexpr double kLongestSeconds = 3e7;

EndedCall ended_call(std::size_t id, ForkedProcess& process) {
  try {
    return {id, EndedCall::How::returned, process.result()};
  } catch (const ForkedCallError& error) {
    return {id, EndedCall::How::failed, error.what()};
  }
}

}  // namespace

ForkedPool::ForkedPool(int jobs, std::chrono::duration<double> limit)
    : jobs_(static_cast<std::size_t>(jobs)),
      limit_(std::chrono::duration_cast<Clock::duration>(
          std::min(limit, std::chrono::duration<double>(kLongestSeconds)))) {
  assert(jobs >= 1);
}

void ForkedPool::start(std::size_t id, const std::function<std::string()>& call) {
  assert(!full());
  running_.emplace(id, Running{ForkedProcess(call), Clock::now() + limit_});
}

int ForkedPool::milliseconds_to_wait(std::optional<std::chrono::duration<double>> patience) const {
  const auto first = std::ranges::min_element(
      running_, {}, [](const auto& entry) { return entry.second.deadline; });
  double seconds = std::chrono::duration<double>(first->second.deadline - Clock::now()).count();
  if (patience) seconds = std::min(seconds, patience->count());
  // Rounded up: waking too early would only wait again.
  return static_cast<int>(std::clamp(seconds, 0.0, 1e6) * 1e3) + 1;
}

void ForkedPool::take_overdue(std::vector<EndedCall>& ended) {
  const Clock::time_point now = Clock::now();
  for (auto entry = running_.begin(); entry != running_.end();) {
    if (entry->second.deadline > now) {
      ++entry;
      continue;
    }
    ended.push_back({entry->first, EndedCall::How::timed_out, ""});
    entry = running_.erase(entry);
  }
}

std::vector<EndedCall> ForkedPool::wait(std::optional<std::chrono::duration<double>> patience) {
  assert(!empty());
  std::vector<pollfd> descriptors;
  for (const auto& [id, running] : running_)
    descriptors.push_back({running.process.descriptor(), POLLIN, 0});
  const int ready = poll(descriptors.data(), descriptors.size(), milliseconds_to_wait(patience));
  if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
  std::vector<EndedCall> ended;
  auto entry = running_.begin();
  for (const pollfd& descriptor : descriptors) {
    const auto current = entry++;
    if (ready <= 0 || descriptor.revents == 0 || current->second.process.read_some()) continue;
    ended.push_back(ended_call(current->first, current->second.process));
    running_.erase(current);
  }
  take_overdue(ended);
  if (!ended.empty() || patience) return ended;
  return wait();
}

}  // namespace tessera
