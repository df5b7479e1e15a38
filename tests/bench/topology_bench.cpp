// How long large clusters take to build, and routes to compute. SimGrid builds one platform per
// process, so every iteration runs in a fork, which reports the time of the building alone.
#include <chrono>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>

#include "hw/topology/topology.h"
#include "sim/config/load.h"
#include "sim/process/forked_call.h"
#include "sim/simgrid/platform.h"
#include "sim/simgrid/simgrid_session.h"

namespace tessera {
namespace {

/// DGX H100 on rails, units of 32 nodes, pods of 16 units, cores above.
ClusterSpec rails(std::int64_t gpus) {
  const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  ClusterSpec cluster = load_cluster("dgx-superpod-h100", catalog);
  cluster.node_count = static_cast<int>(gpus / cluster.node.gpu_count);
  cluster.fabric.units_per_pod = 16;
  cluster.fabric.cores = 16;
  return cluster;
}

template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return time.count();
}

void topology(benchmark::State& state) {
  const ClusterSpec cluster = rails(state.range(0));
  std::size_t links = 0;
  for (auto _ : state) {
    const Topology topology(cluster);
    links = topology.links().size();
    benchmark::DoNotOptimize(links);
  }
  state.counters["links"] = static_cast<double>(links);
}
BENCHMARK(topology)->Arg(1024)->Arg(16384)->Arg(102400)->Unit(benchmark::kMillisecond);

void topology_and_platform(benchmark::State& state) {
  const ClusterSpec cluster = rails(state.range(0));
  for (auto _ : state) {
    state.SetIterationTime(std::stod(run_forked([&] {
      const auto engine = start_simgrid();
      return std::to_string(seconds_of([&] {
        const Topology topology(cluster);
        const Platform platform(topology.links(), topology.gpu_count(),
                                [&](int from, int to) { return topology.route(from, to).links; });
        benchmark::DoNotOptimize(&platform.gpu_host(0));
      }));
    })));
  }
}
BENCHMARK(topology_and_platform)
    ->Arg(1024)
    ->Arg(16384)
    ->Arg(102400)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void route_lookup(benchmark::State& state) {
  const Topology topology(rails(state.range(0)));
  const int gpus = topology.gpu_count();
  int from = 0;
  int to = gpus / 2;
  for (auto _ : state) {
    benchmark::DoNotOptimize(topology.route(from, to).links.data());
    from = (from + 7919) % gpus;
    to = (to + 104729) % gpus;
  }
}
BENCHMARK(route_lookup)->Arg(1024)->Arg(16384)->Arg(102400);

}  // namespace
}  // namespace tessera

BENCHMARK_MAIN();
