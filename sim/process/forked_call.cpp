#include "sim/process/forked_call.h"

#include <cstddef>
#include <utility>

#include "sim/process/forked_pool.h"

namespace tessera {

std::string run_forked(const std::function<std::string()>& call) {
  return run_forked_all({call}, 1).front();
}

std::vector<ForkedOutcome> run_forked_each(const std::vector<std::function<std::string()>>& calls,
                                           int jobs,
                                           const std::function<void(std::size_t)>& on_ended,
                                           const std::function<bool()>& goes_on) {
  ForkedPool pool(jobs, kNoTimeLimit, goes_on);
  pool.expect(calls.size());
  std::vector<ForkedOutcome> outcomes(calls.size());
  std::size_t ended = 0;
  const auto collect = [&] {
    for (EndedCall& call : pool.wait()) {
      const bool returned = call.how == EndedCall::How::returned;
      if (!returned && call.text.empty()) call.text = "unknown error";
      (returned ? outcomes[call.id].result : outcomes[call.id].error) = std::move(call.text);
      on_ended(++ended);
    }
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    while (pool.full()) collect();
    pool.start(i, calls[i]);
  }
  while (!pool.empty()) collect();
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
