#include "sim/process/forked_call.h"

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <map>
#include <system_error>
#include <utility>

#include <poll.h>

#include "sim/process/forked_process.h"

namespace tessera {
namespace {

/// Children under way by the index of their call.
using Running = std::map<std::size_t, ForkedProcess>;

struct Outcome {
  std::string result;
  std::exception_ptr error;
};

Outcome outcome_of(ForkedProcess& process) {
  try {
    return {process.result(), nullptr};
  } catch (const ForkedCallError&) {
    return {"", std::current_exception()};
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

void collect_ended(Running& running, std::vector<Outcome>& outcomes) {
  const std::vector<pollfd> descriptors = wait_for_any(running);
  auto process = running.begin();
  for (const pollfd& descriptor : descriptors) {
    const auto current = process++;
    if (descriptor.revents == 0 || current->second.read_some()) continue;
    outcomes[current->first] = outcome_of(current->second);
    running.erase(current);
  }
}

}  // namespace

std::string run_forked(const std::function<std::string()>& call) {
  return run_forked_all({call}, 1).front();
}

std::vector<std::string> run_forked_all(const std::vector<std::function<std::string()>>& calls,
                                        int jobs) {
  assert(jobs >= 1);
  std::vector<Outcome> outcomes(calls.size());
  Running running;
  std::size_t next = 0;
  while (next < calls.size() || !running.empty()) {
    if (next < calls.size() && running.size() < static_cast<std::size_t>(jobs)) {
      running.emplace(next, ForkedProcess(calls[next]));
      ++next;
      continue;
    }
    collect_ended(running, outcomes);
  }
  std::vector<std::string> results;
  for (Outcome& outcome : outcomes) {
    if (outcome.error) std::rethrow_exception(outcome.error);
    results.push_back(std::move(outcome.result));
  }
  return results;
}

}  // namespace tessera
