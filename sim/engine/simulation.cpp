#include "sim/engine/simulation.h"

#include <algorithm>
#include <utility>

#include "sim/engine/deadlock_error.h"

namespace tessera {
namespace {

std::vector<StageQueues> queues_of_stages(const Program& program) {
  std::vector<StageQueues> queues;
  for (const RankProgram& stage : program.stages) queues.push_back(queues_of(stage));
  return queues;
}

std::vector<OpRecord> empty_records(const Program& program, std::span<const int> ranks) {
  std::vector<OpRecord> records;
  for (const int rank : ranks) {
    const int stage = position_of(rank, program.layout).pipeline;
    const std::size_t ops = program.stages[static_cast<std::size_t>(stage)].ops.size();
    for (std::size_t op = 0; op < ops; ++op) {
      OpRecord record;
      record.rank = rank;
      record.op = static_cast<std::int32_t>(op);
      records.push_back(record);
    }
  }
  return records;
}

}  // namespace

Simulation::Simulation(const TimedProgram& timed)
    : timed_(timed),
      plan_(timed),
      queues_(queues_of_stages(timed.program)),
      engine_(start_simgrid()),
      platform_(plan_.network().links, static_cast<int>(ranks().size()), plan_.network().paths),
      network_(platform_, clock_),
      transfers_(clock_, network_),
      collectives_(plan_, transfers_),
      messages_(plan_, clock_, transfers_),
      records_(empty_records(timed.program, ranks())) {
  create_gpus();
}

void Simulation::create_gpus() {
  const DeviceContext context{timed_, clock_, plan_, collectives_, messages_};
  std::span<OpRecord> remaining(records_);
  for (const int rank : ranks()) {
    const int stage = position_of(rank, timed_.program.layout).pipeline;
    const StageQueues& queues = queues_[static_cast<std::size_t>(stage)];
    const std::size_t ops = queues.sequence.size();
    gpus_.emplace_back(rank, queues, context, remaining.first(ops));
    hosts_.emplace_back(gpus_.back());
    remaining = remaining.subspan(ops);
  }
}

Timeline Simulation::run(std::span<const int> order) {
  for (const int rank : order) {
    const auto at = std::ranges::lower_bound(ranks(), rank) - ranks().begin();
    HostProcess& host = hosts_[static_cast<std::size_t>(at)];
    simgrid::s4u::Actor::create("rank" + std::to_string(rank),
                                &platform_.gpu_host(static_cast<int>(at)), [&host] { host.run(); });
  }
  engine_->run();
  throw_if_blocked();
  return collect();
}

void Simulation::throw_if_blocked() const {
  std::vector<std::string> blocked;
  for (const Gpu& gpu : gpus_) {
    for (std::string& line : gpu.blocked()) blocked.push_back(std::move(line));
  }
  for (std::string& line : messages_.unreceived()) blocked.push_back(std::move(line));
  if (!blocked.empty()) throw DeadlockError(std::move(blocked));
}

Timeline Simulation::collect() {
  Timeline timeline;
  for (Gpu& gpu : gpus_) {
    const std::vector<MemorySample>& samples = gpu.memory().samples();
    timeline.memory.insert(timeline.memory.end(), samples.begin(), samples.end());
  }
  timeline.folding = plan_.folding().ranks;
  for (int rank = 0; rank < timed_.program.layout.world_size(); ++rank) {
    const auto at = std::ranges::lower_bound(ranks(), timeline.folding.of(rank)) - ranks().begin();
    timeline.peak_memory.push_back(gpus_[static_cast<std::size_t>(at)].memory().peak());
  }
  for (const OpRecord& record : records_) {
    timeline.step_time = std::max(timeline.step_time, record.end);
  }
  timeline.ops = std::move(records_);
  return timeline;
}

}  // namespace tessera
