// Tables of results/remat: what the planners reach on the reference problems, and how long they
// take. Usage: remat_study golden|monet|hybrid|dtr|scale|rest|random; writes to stdout.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include <sys/resource.h>

#include "sim/remat/bound.h"
#include "sim/remat/exact/exact_search.h"
#include "sim/remat/planner.h"
#include "sim/remat/tessera/rest_planner.h"
#include "sim/remat/tessera/tessera_planner.h"
#include "tests/sim/remat/reference_data.h"
#include "tests/sim/remat/sample_graphs.h"

namespace tessera::remat {
namespace {

/// CPU time of this process, which has one thread: other jobs of the machine do not count.
class Stopwatch {
 public:
  double seconds() const {
    return static_cast<double>(std::clock() - start_) / static_cast<double>(CLOCKS_PER_SEC);
  }

 private:
  std::clock_t start_ = std::clock();
};

double ratio(Nanoseconds time, const Graph& graph) {
  return static_cast<double>(time) / static_cast<double>(graph.base_time());
}

void golden() {
  std::printf("golden_small.json: optima in program order (recompute), any order (hybrid)\n");
  int feasible = 0;
  int optimal = 0;
  int hybrid = 0;
  int hybrid_optimal = 0;
  double excess = 0;
  for (const test::Golden& problem : test::golden_problems()) {
    const auto optimum = problem.optimum("opt_recompute_in_order");
    const PlanResult plan = make_plan(TesseraPlanner(), problem.graph, {.budget = problem.memory});
    feasible += optimum ? 1 : 0;
    optimal += optimum && plan.feasible && plan.cost.time == *optimum ? 1 : 0;
    if (!problem.fields.contains("opt_remat_swap_full_bw1")) continue;
    for (const int rate : {1, 2}) {
      const auto best = problem.optimum("opt_remat_swap_full_bw" + std::to_string(rate));
      if (!best) continue;
      const HostLink link{.bytes_per_ns = static_cast<double>(rate)};
      const PlanResult both =
          make_plan(TesseraPlanner(), problem.graph, {.budget = problem.memory, .link = link});
      ++hybrid;
      hybrid_optimal += both.cost.time == *best ? 1 : 0;
      excess += static_cast<double>(both.cost.time) / static_cast<double>(*best) - 1;
    }
  }
  std::printf("recompute only: %d of %d feasible problems optimal\n", optimal, feasible);
  std::printf("with swapping:  %d of %d optimal, %.2f %% above on average\n", hybrid_optimal,
              hybrid, 100 * excess / hybrid);
}

void monet() {
  std::printf("recompute only: time above the solver's cost [%%], seconds (- = over the budget)\n");
  std::printf("%-16s %4s", "instance", "GiB");
  const std::vector<std::string> baselines{"libra", "chen_greedy", "knapsack", "dtr", "capuchin"};
  std::printf(" %7s %6s %7s %6s %9s", "fast", "s", "thorough", "s", "certified");
  for (const std::string& name : baselines) std::printf(" %11s", name.c_str());
  std::printf("\n");
  double sums[2] = {0, 0};
  double most[2] = {0, 0};
  for (const test::KnownCost& known : test::monet_costs()) {
    const Graph graph = test::monet_graph(known.file);
    std::printf("%-16s %4.0f", known.file, known.gibibytes);
    const auto gap = [&](const PlanResult& plan) {
      return 100 * (static_cast<double>(plan.cost.time) / static_cast<double>(known.cost) - 1);
    };
    PlanRequest request{.budget = test::gibibytes(known.gibibytes)};
    double certified = 0;
    for (const Effort effort : {Effort::fast, Effort::thorough}) {
      request.effort = effort;
      const Stopwatch watch;
      const PlanResult plan = make_plan(TesseraPlanner(), graph, request);
      const int column = effort == Effort::fast ? 0 : 1;
      std::printf(" %7.3f %6.3f", gap(plan), watch.seconds());
      sums[column] += gap(plan);
      most[column] = std::max(most[column], gap(plan));
      certified = 100 * plan.certified_gap;
    }
    std::printf(" %9.2f", certified);
    for (const std::string& name : baselines) {
      const PlanResult plan = make_plan(*make_planner(name), graph, request);
      plan.feasible ? std::printf(" %11.2f", gap(plan)) : std::printf(" %11s", "-");
    }
    std::printf("\n");
  }
  const auto count = static_cast<double>(test::monet_costs().size());
  std::printf("fast: mean %.3f max %.3f; thorough: mean %.3f max %.3f\n", sums[0] / count, most[0],
              sums[1] / count, most[1]);
}

void hybrid() {
  std::printf("makespan over base time, full duplex, latency 10 us; GiB 0 = the lower bound\n");
  std::printf("%-16s %4s %9s", "instance", "GiB", "recompute");
  for (const char* rate : {"12 GB/s", "25 GB/s", "450 GB/s"}) std::printf(" %9s", rate);
  for (const char* name : {"libra", "capuchin", "belady"}) std::printf(" %9s", name);
  std::printf(" %7s\n", "s (12)");
  std::vector<test::KnownCost> rows = test::monet_costs();
  rows.push_back({"monet_vgg16_176", 0, 0});
  rows.push_back({"monet_unet_11", 0, 0});
  const auto print = [](const Graph& graph, const PlanResult& plan) {
    plan.feasible ? std::printf(" %9.4f", ratio(plan.cost.time, graph)) : std::printf(" %9s", "-");
  };
  for (const test::KnownCost& row : rows) {
    const Graph graph = test::monet_graph(row.file);
    PlanRequest request{.budget = row.gibibytes > 0 ? test::gibibytes(row.gibibytes)
                                                    : lower_bound(graph).bytes};
    std::printf("%-16s %4.0f", row.file, row.gibibytes);
    print(graph, make_plan(TesseraPlanner(), graph, request));
    double seconds = 0;
    for (const double rate : {12.0, 25.0, 450.0}) {
      request.link = HostLink{.bytes_per_ns = rate, .latency = 10'000};
      const Stopwatch watch;
      print(graph, make_plan(TesseraPlanner(), graph, request));
      if (rate == 12.0) seconds = watch.seconds();
    }
    request.link = HostLink{.bytes_per_ns = 12, .latency = 10'000};
    for (const char* name : {"libra", "capuchin", "belady"})
      print(graph, make_plan(*make_planner(name), graph, request));
    std::printf(" %7.2f\n", seconds);
  }
}

void dtr() {
  std::printf(
      "total compute over base compute, recompute only; reference: the better of h_DTR_eq and "
      "MSPS\n%-16s %5s %9s %9s %9s %9s %6s\n",
      "log", "ratio", "reference", "tessera", "certified", "dtr", "s");
  for (const char* log : {"resnet32_b56", "densenet121_b84", "treelstm_6", "lstm_128"}) {
    const Instance instance =
        read_instance(test::reference_folder() / "dtr_logs" / (std::string(log) + ".ndjson"));
    for (const char* share : {"0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3"}) {
      const auto curves = test::dtr_curves();
      const auto reference = curves.find({log, share});
      const PlanRequest request{
          .budget = static_cast<ByteCount>(std::stod(share) *
                                           static_cast<double>(*instance.release_peak))};
      const Stopwatch watch;
      const PlanResult plan = make_plan(TesseraPlanner(), instance.graph, request);
      const double seconds = watch.seconds();
      const PlanResult online = make_plan(*make_planner("dtr"), instance.graph, request);
      std::printf("%-16s %5s", log, share);
      reference == curves.end() ? std::printf(" %9s", "-")
                                : std::printf(" %9.4f", reference->second);
      std::printf(" %9.4f %7.2f %%", ratio(plan.cost.time, instance.graph),
                  100 * plan.certified_gap);
      online.feasible ? std::printf(" %9.4f", ratio(online.cost.time, instance.graph))
                      : std::printf(" %9s", "-");
      std::printf(" %6.2f\n", seconds);
    }
  }
}

void scale() {
  std::printf("transformer-like steps, fast effort, recompute only, half of the peak\n");
  std::printf("%9s %8s %8s %8s %8s %9s\n", "ops", "x base", "bound", "plan s", "bound s", "RSS MB");
  for (const int ops : {1000, 10'000, 100'000, 1'000'000}) {
    const Graph graph = test::transformer_graph(ops);
    const PlanRequest request{.budget = base_peak(graph) / 2, .effort = Effort::fast};
    const Stopwatch watch;
    const PlannedSchedule plan = TesseraPlanner().plan(graph, request);
    const double seconds = watch.seconds();
    const ReplayResult cost = replay(graph, plan.schedule, {});
    const Stopwatch bound_watch;
    const Nanoseconds bound = time_bound(graph, request.budget, {}, cost.time);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%9d %8.4f %8.4f %8.2f %8.2f %9ld%s\n", graph.ops(), ratio(cost.time, graph),
                ratio(bound, graph), seconds, bound_watch.seconds(), usage.ru_maxrss / 1024,
                cost.peak <= request.budget ? "" : " OVER THE BUDGET");
  }
  const Graph graph = test::transformer_graph(3000);
  for (const bool swap : {false, true}) {
    std::vector<ByteCount> budgets;
    const ByteCount least = lower_bound(graph).bytes;
    for (int k = 0; k < 100; ++k) budgets.push_back(least + (base_peak(graph) - least) * k / 99);
    PlanRequest request;
    if (swap) request.link = HostLink{.bytes_per_ns = 12, .latency = 10'000};
    const Stopwatch watch;
    const auto plans = plan_budgets(graph, budgets, request);
    const double seconds = watch.seconds();
    int met = 0;
    for (std::size_t k = 0; k < budgets.size(); ++k)
      met += replay(graph, plans[k].schedule, request.link).peak <= budgets[k] ? 1 : 0;
    std::printf("100 budgets of %d operators, %s: %.2f s, %d met\n", graph.ops(),
                swap ? "with swapping" : "recompute only", seconds, met);
  }
}

/// What a shortage costs: plans of the rest of a step, its forward pass done or not begun.
void rest() {
  std::printf(
      "plans of the rest of transformer-like steps when memory runs short, against fast effort\n");
  std::printf("%9s %7s %7s %6s %9s %9s %9s %9s\n", "ops", "budget", "done", "link", "x base",
              "plan ms", "x fast", "fast ms");
  for (const int ops : {1000, 3000, 10'000}) {
    const Graph graph = test::transformer_graph(ops);
    for (const double share : {0.8, 0.5, 0.4}) {
      for (const bool swaps : {false, true}) {
        PlanRequest request{.effort = Effort::fast};
        request.budget = static_cast<ByteCount>(share * static_cast<double>(base_peak(graph)));
        if (swaps) request.link = HostLink{.bytes_per_ns = 12, .latency = 10'000};
        const Stopwatch watch;
        const PlannedSchedule plan = plan_rest(graph, request);
        const double milliseconds = 1e3 * watch.seconds();
        const ReplayResult cost = replay(graph, plan.schedule, request.link);
        const Stopwatch fast_watch;
        const PlannedSchedule fast = TesseraPlanner().plan(graph, request);
        const double fast_milliseconds = 1e3 * fast_watch.seconds();
        const ReplayResult fast_cost = replay(graph, fast.schedule, request.link);
        std::printf("%9d %7.1f %7d %6s %9.4f %9.1f %9.4f %9.1f%s\n", graph.ops(), share,
                    graph.done(), swaps ? "12" : "-", ratio(cost.time, graph), milliseconds,
                    ratio(fast_cost.time, graph), fast_milliseconds,
                    cost.peak <= request.budget ? "" : " OVER THE BUDGET");
      }
    }
  }
}

/// The guarantees on `count` random graphs, against the exact search.
int random(int count) {
  int broken = 0;
  int compared = 0;
  int optimal = 0;
  int missed = 0;
  for (int k = 0; k < count; ++k) {
    Random random(static_cast<std::uint64_t>(k) + 5'000'000);
    const Graph graph = test::random_graph(random);
    const ByteCount least = lower_bound(graph).bytes;
    const ByteCount most = std::max(least, base_peak(graph));
    PlanRequest request;
    request.budget = k % 4 == 0 ? least : least + random.below(static_cast<int>(most - least) + 1);
    request.effort = k % 16 == 0 ? Effort::thorough : Effort::fast;
    if (k % 3 != 0)
      request.link =
          HostLink{static_cast<double>(1 + random.below(4)), random.below(3), random.below(2) == 0};
    const PlanResult plan = make_plan(TesseraPlanner(), graph, request);
    const bool over = plan.feasible && plan.cost.peak > request.budget;
    bool wrong = over || (request.link && !plan.feasible) || plan.time_bound > plan.cost.time;
    if (!request.link) {
      const auto optimum = exact_recompute(graph, request.budget, false);
      wrong = wrong || (plan.feasible && (!optimum || plan.cost.time < optimum->time ||
                                          plan.time_bound > optimum->time));
      compared += optimum ? 1 : 0;
      optimal += optimum && plan.feasible && plan.cost.time == optimum->time ? 1 : 0;
      missed += optimum && !plan.feasible ? 1 : 0;
    }
    request.budget = least - 1;
    wrong = wrong || make_plan(TesseraPlanner(), graph, request).feasible;
    broken += wrong ? 1 : 0;
  }
  std::printf("%d random graphs of at most 12 operators: %d break a guarantee\n", count, broken);
  std::printf(
      "recompute only: %d feasible, %d optimal, %d not found (fast effort but for 1 in 16)\n",
      compared, optimal, missed);
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera::remat

int main(int argc, char** argv) {
  using namespace tessera::remat;
  const std::string table = argc > 1 ? argv[1] : "";
  if (table == "random") return random(argc > 2 ? std::atoi(argv[2]) : 100'000);
  if (table == "scale") return scale(), 0;
  if (table == "rest") return rest(), 0;
  if (!std::filesystem::exists(test::reference_folder())) {
    std::fprintf(stderr, "no measurements; set TESSERA_MEASUREMENTS\n");
    return 3;
  }
  if (table == "golden") return golden(), 0;
  if (table == "monet") return monet(), 0;
  if (table == "hybrid") return hybrid(), 0;
  if (table == "dtr") return dtr(), 0;
  std::fprintf(stderr, "usage: remat_study golden|monet|hybrid|dtr|scale|rest|random [COUNT]\n");
  return 2;
}
