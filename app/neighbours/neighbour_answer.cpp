#include "app/neighbours/neighbour_answer.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "sim/engine/neighbours.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NeighbourStep, begin, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NeighbourLink, name, gigabytes_per_s, bytes, busy_share,
                                   together_share)

namespace {

/// What crosses from the process that simulates.
struct Together {
  std::vector<std::vector<NeighbourStep>> steps;
  std::vector<NeighbourLink> links;
  Seconds end;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Together, steps, links, end)

constexpr int kProcesses = 2;

/// "0-7, 12".
std::string ranges_text(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

NeighbourLink link_of(const ContendedLink& link, const Topology& topology, Seconds end) {
  const double all = end.value() > 0 ? end.value() : 1;
  return {.name = topology.link(link.link).name,
          .gigabytes_per_s = link.bandwidth.value() / 1e9,
          .bytes = link.bytes,
          .busy_share = link.busy.value() / all,
          .together_share = link.together.value() / all};
}

Together run_together(const PlacedJobs& placed, const std::vector<TimedProgram>& programs,
                      int steps) {
  std::vector<NeighbourJob> jobs;
  for (std::size_t i = 0; i < programs.size(); ++i)
    jobs.push_back({.timed = &programs[i], .start = placed.jobs[i].start});
  NeighbourRun run = simulate_together(jobs, steps);
  Together together{.steps = std::move(run.steps), .links = {}, .end = run.end};
  for (const ContendedLink& link : run.links)
    together.links.push_back(link_of(link, programs.front().topology, run.end));
  return together;
}

std::vector<Seconds> times_alone(const std::vector<TimedProgram>& programs) {
  std::vector<std::function<Seconds()>> calls;
  for (const TimedProgram& timed : programs)
    calls.emplace_back([&timed] { return step_time_of(timed); });
  std::vector<Seconds> times;
  for (const ForkedAnswer<Seconds>& answer : forked_each<Seconds>(calls, kProcesses))
    times.push_back(answer.value());
  return times;
}

/// Steps that began when all jobs ran; all of them where there are none.
std::vector<NeighbourStep> steps_with_all(const std::vector<NeighbourStep>& steps,
                                          Seconds last_start) {
  std::vector<NeighbourStep> with_all;
  std::ranges::copy_if(steps, std::back_inserter(with_all),
                       [&](const NeighbourStep& step) { return step.begin >= last_start; });
  return with_all.empty() ? steps : with_all;
}

NeighbourTimes times_of(const PlacedJob& job, Seconds alone,
                        const std::vector<NeighbourStep>& steps, Seconds last_start) {
  const std::vector<NeighbourStep> counted = steps_with_all(steps, last_start);
  NeighbourTimes times{.name = job.name,
                       .nodes = ranges_text(job.nodes),
                       .gpus = job.scenario.step.layout.world_size(),
                       .start = job.start,
                       .alone = alone,
                       .together = {},
                       .shortest = counted.front().time(),
                       .longest = counted.front().time(),
                       .steps = static_cast<int>(steps.size())};
  for (const NeighbourStep& step : counted) {
    times.together += step.time() / static_cast<double>(counted.size());
    times.shortest = std::min(times.shortest, step.time());
    times.longest = std::max(times.longest, step.time());
  }
  return times;
}

}  // namespace

double NeighbourLink::all_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

NeighbourAnswer neighbours_answer(const PlacedJobs& placed, int steps,
                                  const PredictorWeights& weights) {
  std::vector<TimedProgram> programs;
  Seconds last_start;
  for (const PlacedJob& job : placed.jobs) {
    programs.push_back(plan_step(job.scenario, weights));
    last_start = std::max(last_start, job.start);
  }
  const std::vector<Seconds> alone = times_alone(programs);
  Together together = forked([&] { return run_together(placed, programs, steps); });
  NeighbourAnswer answer{.name = placed.name,
                         .cluster = placed.cluster.id,
                         .cluster_gpus = placed.cluster.gpu_count(),
                         .simulated = together.end,
                         .jobs = {},
                         .links = std::move(together.links)};
  for (std::size_t i = 0; i < programs.size(); ++i) {
    answer.jobs.push_back(times_of(placed.jobs[i], alone[i], together.steps[i], last_start));
    answer.jobs.back().meets_others = std::ranges::any_of(
        answer.links, [i](const NeighbourLink& link) { return link.bytes[i] > 0; });
  }
  std::ranges::stable_sort(answer.links, std::greater(), &NeighbourLink::together_share);
  return answer;
}

}  // namespace tessera
