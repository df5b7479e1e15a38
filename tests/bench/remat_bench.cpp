// How long plans take: by graph size, and the parts of one plan.
#include <benchmark/benchmark.h>

#include "sim/remat/tessera/price_sweep.h"
#include "sim/remat/tessera/tessera_planner.h"
#include "tests/sim/remat/sample_graphs.h"

namespace tessera::remat {
namespace {

void plan_half_of_the_peak(benchmark::State& state) {
  const Graph graph = test::transformer_graph(static_cast<int>(state.range(0)));
  const PlanRequest request{.budget = base_peak(graph) / 2, .effort = Effort::fast};
  for (auto _ : state) benchmark::DoNotOptimize(TesseraPlanner().plan(graph, request));
  state.SetItemsProcessed(state.iterations() * graph.ops());
}
BENCHMARK(plan_half_of_the_peak)->Arg(100)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void one_sweep_of_prices(benchmark::State& state) {
  const Graph graph = test::transformer_graph(static_cast<int>(state.range(0)));
  PriceSweep sweep(graph);
  Prices prices;
  prices.stage.assign(graph.ops() + 1, 0.01);
  const std::vector<double> times(graph.ops(), 1e5);
  StagePlan plan;
  for (auto _ : state) sweep.decode(prices, times, nullptr, nullptr, plan);
  state.SetItemsProcessed(state.iterations() * graph.ops());
}
BENCHMARK(one_sweep_of_prices)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void replay_of_a_plan(benchmark::State& state) {
  const Graph graph = test::transformer_graph(static_cast<int>(state.range(0)));
  const PlanRequest request{.budget = base_peak(graph) / 2, .effort = Effort::fast};
  const Schedule schedule = TesseraPlanner().plan(graph, request).schedule;
  for (auto _ : state) benchmark::DoNotOptimize(replay(graph, schedule, {}));
  state.SetItemsProcessed(state.iterations() * graph.ops());
}
BENCHMARK(replay_of_a_plan)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera::remat

BENCHMARK_MAIN();
