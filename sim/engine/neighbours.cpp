#include "sim/engine/neighbours.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sim/engine/device/gpu.h"
#include "sim/engine/device/host_process.h"
#include "sim/engine/errors/deadlock_error.h"
#include "sim/engine/errors/out_of_memory_error.h"
#include "sim/engine/errors/program_check.h"
#include "sim/engine/errors/time_limit_error.h"
#include "sim/engine/neighbour_network.h"
#include "sim/engine/network/simgrid_run.h"
#include "sim/engine/stage_parts.h"

namespace tessera {
namespace {

/// How long contended links were busy, and with whom.
class LinkMeter {
 public:
  LinkMeter(NeighbourNetwork& network, const SimClock& clock)
      : network_(network), clock_(clock), links_(network.contended.size()) {
    const std::size_t jobs = network.plans.size();
    for (Use& use : links_) use.flows.assign(jobs, 0);
  }

  /// A flow over `path` begins, or ends where it has no bytes.
  void flow(PathId path, double bytes) {
    const auto number = static_cast<std::size_t>(path.index());
    const auto job = static_cast<std::size_t>(network_.job_of_path[number]);
    for (const int link : network_.contended_on_path[number]) {
      Use& use = links_[static_cast<std::size_t>(link)];
      ContendedLink& contended = network_.contended[static_cast<std::size_t>(link)];
      account(use, contended);
      contended.bytes[job] += bytes;
      const int before = use.flows[job];
      use.flows[job] += bytes > 0 ? 1 : -1;
      if (before == 0) ++use.jobs;
      if (use.flows[job] == 0) --use.jobs;
    }
  }

 private:
  struct Use {
    std::vector<int> flows;  ///< by job
    int jobs = 0;            ///< that have some
    Seconds since;
  };

  void account(Use& use, ContendedLink& contended) const {
    const Seconds passed = clock_.now() - use.since;
    use.since = clock_.now();
    if (use.jobs > 0) contended.busy += passed;
    if (use.jobs > 1) contended.together += passed;
  }

  NeighbourNetwork& network_;
  const SimClock& clock_;
  std::vector<Use> links_;
};

/// A job that runs its step again and again.
class RepeatedJob {
 public:
  RepeatedJob(const TimedProgram& timed, const CommunicationPlan& plan, SimClock& clock,
              Transfers& transfers)
      : timed_(timed),
        plan_(plan),
        queues_(queues_of_stages(timed)),
        memory_(memory_of_stages(timed)),
        clock_(clock),
        collectives_(plan, transfers),
        messages_(plan, clock, transfers),
        context_{timed, clock, plan, collectives_, messages_, transfers, [this] { end_gpu(); }} {}

  /// `on_step` runs behind every step and says whether another one follows.
  void run(Seconds start, std::function<bool()> on_step) {
    on_step_ = std::move(on_step);
    clock_.at(start, [this] { begin_step(); });
  }

  const std::vector<NeighbourStep>& steps() const { return steps_; }
  std::vector<std::string> blocked() const {
    std::vector<std::string> lines;
    if (gpus_.empty()) return lines;
    for (const Gpu& gpu : gpus_.back()) {
      for (std::string& line : gpu.blocked()) lines.push_back(std::move(line));
    }
    return lines;
  }
  std::vector<std::string> shortages() const {
    std::vector<std::string> lines;
    if (gpus_.empty()) return lines;
    for (const Gpu& gpu : gpus_.back()) {
      if (gpu.pressure() == nullptr) continue;
      for (const MemoryShortage& shortage : gpu.pressure()->shortages())
        lines.push_back(text_of(shortage, timed_));
    }
    return lines;
  }

 private:
  // The clock may still hold actions of the GPUs of steps before: these stay.
  void begin_step() {
    began_ = clock_.now();
    std::deque<Gpu>& gpus = gpus_.emplace_back();
    std::deque<HostProcess>& hosts = hosts_.emplace_back();
    left_ = 0;
    for (const int rank : plan_.folding().simulated) {
      const auto stage = static_cast<std::size_t>(timed_.program.program_number(rank));
      std::vector<OpRecord>& records = records_[rank];
      records.resize(queues_[stage].sequence.size());
      gpus.emplace_back(rank, queues_[stage], context_, records, MemorySamples::peaks_only,
                        memory_.empty() ? nullptr : &memory_[stage]);
      hosts.emplace_back(gpus.back());
      if (!records.empty()) ++left_;
    }
    for (HostProcess& host : hosts) host.begin();
  }

  void end_gpu() {
    if (--left_ > 0) return;
    steps_.push_back({began_, clock_.now()});
    clock_.after(Seconds(0), [this] {
      if (on_step_()) begin_step();
    });
  }

  const TimedProgram& timed_;
  const CommunicationPlan& plan_;
  std::vector<StageQueues> queues_;
  std::vector<StageMemory> memory_;
  SimClock& clock_;
  CollectiveBoard collectives_;
  MessageBoard messages_;
  DeviceContext context_;
  std::map<int, std::vector<OpRecord>> records_;  ///< by rank
  std::list<std::deque<Gpu>> gpus_;               ///< by step
  std::list<std::deque<HostProcess>> hosts_;
  std::size_t left_ = 0;  ///< GPUs that have not ended the step
  Seconds began_;
  std::vector<NeighbourStep> steps_;
  std::function<bool()> on_step_;
};

std::vector<TimedProgram> programs_of(std::span<const NeighbourJob> jobs) {
  std::vector<TimedProgram> programs;
  for (const NeighbourJob& job : jobs) {
    check_program(*job.timed);
    programs.push_back(*job.timed);
  }
  return programs;
}

class NeighbourSimulation {
 public:
  NeighbourSimulation(std::span<const NeighbourJob> jobs, int steps)
      : programs_(programs_of(jobs)),
        steps_(static_cast<std::size_t>(steps)),
        network_(neighbour_network(programs_)),
        link_paths_(network_.network.links, network_.network.paths, network_.network.has_limit),
        flows_(link_paths_, clock_),
        transfers_(clock_, flows_),
        meter_(network_, clock_) {
    flows_.watch([this](PathId path, double bytes) { meter_.flow(path, bytes); });
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      jobs_.emplace_back(programs_[i], network_.plans[i], clock_, transfers_);
      jobs_.back().run(jobs[i].start, [this] { return goes_on(); });
    }
  }

  NeighbourRun run() {
    limit_time();
    simgrid_.run(clock_, flows_, link_paths_, 1);
    throw_if_stuck();
    NeighbourRun run{.steps = {}, .links = std::move(network_.contended), .end = end_};
    for (const RepeatedJob& job : jobs_) {
      run.steps.push_back(job.steps());
      // Flows that were under way at the end went on without the others.
      std::erase_if(run.steps.back(),
                    [this](const NeighbourStep& step) { return step.end > end_; });
    }
    return run;
  }

 private:
  bool is_done() const {
    return std::ranges::all_of(
        jobs_, [this](const RepeatedJob& job) { return job.steps().size() >= steps_; });
  }

  bool goes_on() {
    if (!is_done()) return true;
    end_ = clock_.now();
    clock_.stop();
    return false;
  }

  void limit_time() {
    for (const TimedProgram& timed : programs_) {
      const Seconds limit = timed.simulation.time_limit;
      if (limit > Seconds(0) && (limit_ == Seconds(0) || limit < limit_)) limit_ = limit;
    }
    if (limit_ == Seconds(0)) return;
    clock_.limit_wall_time(limit_, [this] {
      out_of_time_ = true;
      end_ = clock_.now();
      clock_.stop();
    });
  }

  void throw_if_stuck() const {
    if (is_done()) return;
    if (out_of_time_)
      throw TimeLimitError(
          {.limit = limit_, .simulated = end_, .events = clock_.events(), .unfinished = {}});
    std::vector<std::string> short_of_memory, blocked;
    for (const RepeatedJob& job : jobs_) {
      for (std::string& line : job.shortages()) short_of_memory.push_back(std::move(line));
      for (std::string& line : job.blocked()) blocked.push_back(std::move(line));
    }
    if (!short_of_memory.empty()) throw OutOfMemoryError(std::move(short_of_memory));
    throw DeadlockError(std::move(blocked));
  }

  std::vector<TimedProgram> programs_;  ///< by job
  std::size_t steps_;
  NeighbourNetwork network_;
  LinkPaths link_paths_;
  SimGridRun simgrid_;
  SimClock clock_;
  FlowNetwork flows_;
  Transfers transfers_;
  LinkMeter meter_;
  std::deque<RepeatedJob> jobs_;
  Seconds limit_, end_;
  bool out_of_time_ = false;
};

}  // namespace

NeighbourRun simulate_together(std::span<const NeighbourJob> jobs, int steps) {
  return NeighbourSimulation(jobs, steps).run();
}

}  // namespace tessera
