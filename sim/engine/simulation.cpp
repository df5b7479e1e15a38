#include "sim/engine/simulation.h"

#include <algorithm>
#include <utility>

#include "sim/engine/errors/deadlock_error.h"
#include "sim/engine/errors/out_of_memory_error.h"
#include "sim/engine/errors/time_limit_error.h"

namespace tessera {
namespace {

std::size_t ops_of(int rank, const Program& program) {
  return program.program_of(rank).ops.size();
}

/// So many ops take a few tenths of a second: then huge pages pay for themselves.
constexpr std::size_t kManyOps = 1'000'000;

OpRecords empty_records(const Program& program, std::span<const int> ranks) {
  std::size_t count = 0;
  for (const int rank : ranks) count += ops_of(rank, program);
  if (count >= kManyOps) let_heap_use_huge_pages();
  return OpRecords(count);
}

}  // namespace

Simulation::Simulation(const TimedProgram& timed, MemorySamples samples)
    : timed_(timed),
      plan_(timed),
      records_(empty_records(timed.program, ranks())),
      queues_(queues_of_stages(timed)),
      memory_(memory_of_stages(timed)),
      link_paths_(plan_.network().links, plan_.network().paths, plan_.network().has_limit),
      network_(link_paths_, clock_),
      transfers_(clock_, network_),
      collectives_(plan_, transfers_),
      messages_(plan_, clock_, transfers_),
      context_{timed, clock_, plan_, collectives_, messages_, transfers_} {
  create_gpus(samples);
}

void Simulation::create_gpus(MemorySamples samples) {
  std::span<OpRecord> remaining(records_);
  for (const int rank : ranks()) {
    const int stage = timed_.program.program_number(rank);
    const StageQueues& queues = queues_[static_cast<std::size_t>(stage)];
    const std::size_t ops = queues.sequence.size();
    const StageMemory* memory =
        memory_.empty() ? nullptr : &memory_[static_cast<std::size_t>(stage)];
    gpus_.emplace_back(rank, queues, context_, remaining.first(ops), samples, memory);
    hosts_.emplace_back(gpus_.back());
    remaining = remaining.subspan(ops);
  }
}

Timeline Simulation::run(std::span<const int> order) {
  for (const int rank : order)
    clock_.after(Seconds(0), [&host = hosts_[place_of(rank)]] { host.begin(); });
  limit_time();
  simgrid_.run(clock_, network_, link_paths_, static_cast<int>(ranks().size()),
               [&](SharedLinks& simgrid) { create_actors(order, simgrid); });
  throw_if_out_of_time();
  throw_if_out_of_memory();
  throw_if_blocked();
  return collect();
}

void Simulation::limit_time() {
  const Seconds limit = timed_.simulation.time_limit;
  if (limit == Seconds(0)) return;
  // SimGrid does not stand exceptions while actors live: the run ends by itself.
  clock_.limit_wall_time(limit, [this] {
    out_of_time_ = true;
    simulated_time_ = clock_.now();
    clock_.stop();
  });
}

void Simulation::create_actors(std::span<const int> order, SharedLinks& simgrid) {
  for (const int rank : order) {
    const std::size_t place = place_of(rank);
    hosts_[place].live_on(simgrid, "rank" + std::to_string(rank), static_cast<int>(place));
  }
}

std::size_t Simulation::place_of(int rank) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(ranks(), rank) - ranks().begin());
}

void Simulation::throw_if_out_of_time() const {
  constexpr std::size_t kMostLines = 8;
  if (!out_of_time_) return;
  std::vector<std::string> unfinished;
  for (const Gpu& gpu : gpus_) {
    for (std::string& line : gpu.blocked()) {
      if (unfinished.size() < kMostLines) unfinished.push_back(std::move(line));
    }
  }
  throw TimeLimitError({.limit = timed_.simulation.time_limit,
                        .simulated = simulated_time_,
                        .events = clock_.events(),
                        .unfinished = std::move(unfinished)});
}

void Simulation::throw_if_out_of_memory() const {
  std::vector<std::string> lines;
  for (const Gpu& gpu : gpus_) {
    if (gpu.pressure() == nullptr) continue;
    for (const MemoryShortage& shortage : gpu.pressure()->shortages())
      lines.push_back(text_of(shortage, timed_));
  }
  if (!lines.empty()) throw OutOfMemoryError(std::move(lines));
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
    timeline.step_time = std::max(timeline.step_time, gpu.last_end());
    if (gpu.pressure() == nullptr) continue;
    const std::vector<PressureCopy>& copies = gpu.pressure()->copies();
    timeline.pressure_copies.insert(timeline.pressure_copies.end(), copies.begin(), copies.end());
    const std::vector<PressureRerun>& reran = gpu.pressure()->reran();
    timeline.pressure_reruns.insert(timeline.pressure_reruns.end(), reran.begin(), reran.end());
    const std::vector<MemoryStall>& stalls = gpu.pressure()->stalls();
    timeline.memory_stalls.insert(timeline.memory_stalls.end(), stalls.begin(), stalls.end());
  }
  timeline.folding = plan_.folding().ranks;
  for (int rank = 0; rank < timed_.program.layout.world_size(); ++rank) {
    const std::size_t place = place_of(timeline.folding.of(rank));
    timeline.peak_memory.push_back(gpus_[place].memory().peak());
  }
  timeline.ops = std::move(records_);
  return timeline;
}

}  // namespace tessera
