#include "sim/process/forked_call.h"

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <map>
#include <system_error>
#include <utility>

#include <poll.h>

#include "sim/process/forked_process.h"

namespace tessera {
namespace {

/// Children under way by the index of their call.
using Running = std::map<std::size_t, ForkedProcess>;

ForkedOutcome outcome_of(ForkedProcess& process) {
  try {
    return {process.result(), ""};
  } catch (const ForkedCallError& error) {
    const std::string text = error.what();
    return {"", text.empty() ? "unknown error" : text};
  }
}

/// Descriptors that have something to read, in the order of `running`.
std::vector<pollfd> wait_for_any(const Running& running) {
  std::vector<pollfd> descriptors;
  for (const auto& [index, process] : running) {
    descriptors.push_back({process.descriptor(), POLLIN, 0});
  }
  while (poll(descriptors.data(), descriptors.size(), -1) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
  }
  return descriptors;
}

/// How many have ended.
std::size_t collect_ended(Running& running, std::vector<ForkedOutcome>& outcomes) {
  const std::vector<pollfd> descriptors = wait_for_any(running);
  std::size_t ended = 0;
  auto process = running.begin();
  for (const pollfd& descriptor : descriptors) {
    const auto current = process++;
    if (descriptor.revents == 0 || current->second.read_some()) continue;
    outcomes[current->first] = outcome_of(current->second);
    running.erase(current);
    ++ended;
  }
  return ended;
}

}  // namespace

std::string run_forked(const std::function<std::string()>& call) {
  return run_forked_all({call}, 1).front();
}

std::vector<ForkedOutcome> run_forked_each(const std::vector<std::function<std::string()>>& calls,
                                           int jobs,
                                           const std::function<void(std::size_t)>& on_ended) {
  assert(jobs >= 1);
  std::vector<ForkedOutcome> outcomes(calls.size());
  Running running;
  std::size_t next = 0;
  std::size_t ended = 0;
  while (next < calls.size() || !running.empty()) {
    if (next < calls.size() && running.size() < static_cast<std::size_t>(jobs)) {
      running.emplace(next, ForkedProcess(calls[next]));
      ++next;
      continue;
    }
    for (std::size_t more = collect_ended(running, outcomes); more > 0; --more) on_ended(++ended);
  }
  return outcomes;
}

std::vector<std::string> run_forked_all(const std::vector<std::function<std::string()>>& calls,
                                        int jobs) {
  std::vector<std::string> results;
  for (ForkedOutcome& outcome : run_forked_each(calls, jobs, [](std::size_t) {})) {
    if (!outcome.error.empty()) throw ForkedCallError(outcome.error);
    results.push_back(std::move(outcome.result));
  }
  return results;
}

}  // namespace tessera
