#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/commands/memory_budget.h"
#include "app/cli/commands/plan_program.h"
#include "app/html/graph_plan_page.h"
#include "app/shell/output.h"
#include "app/shell/parsed_option.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/formats/output_file.h"
#include "sim/remat/io/plan_text.h"

namespace tessera {
namespace {

struct PlanGraphOptions {
  std::string file;
  int instance = 0;
  std::string budget;
  std::string planner = "tessera";
  bool no_swap = false;
  std::string link = "12 GB/s";
  std::string latency;
  bool half_duplex = false;
  std::string host_memory;
  std::string effort;
  std::string program;
  bool solve = false;
  std::string format;
  std::string report_file;
};

/// A bare number counts bytes.
Bytes bytes_of(const char* option, const std::string& text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
  return parsed_option(option, bare ? text + " B" : text, parse_bytes);
}

remat::HostLink link_of(const PlanGraphOptions& options, const remat::Instance& instance) {
  const BytesPerSecond rate = parsed_option("--link", options.link, parse_bandwidth);
  if (!(rate.value() >= 1))
    throw InputError({.where = "--link",
                      .what = "is " + options.link,
                      .hint = "give a rate above 1 B/s, or --no-swap"});
  // The toy graphs count time in units far below a real copy's start.
  std::string latency = options.latency;
  if (latency.empty()) latency = instance.format == "golden" ? "0 s" : "10 us";
  const Seconds start = parsed_option("--link-latency", latency, parse_seconds);
  if (start.value() > 1)
    throw InputError(
        {.where = "--link-latency", .what = "is " + latency, .hint = "give at most 1 s"});
  return {.bytes_per_ns = rate.value() * 1e-9,
          .latency = static_cast<remat::Nanoseconds>(start.value() * 1e9 + 0.5),
          .full_duplex = !options.half_duplex};
}

remat::ByteCount budget_of(const PlanGraphOptions& options, const remat::Instance& instance) {
  const remat::Graph& graph = instance.graph;
  if (const auto share = share_after("--budget", options.budget))
    return share_of_activations(*share, Bytes(graph.static_bytes()), Bytes(base_peak(graph)))
        .value();
  if (!options.budget.empty()) return bytes_of("--budget", options.budget).value();
  if (instance.memory) return *instance.memory;
  throw InputError({.where = "--budget",
                    .what = "is missing, and " + options.file + " names none",
                    .hint = "give the memory of the device, for instance --budget 8GiB"});
}

/// The optimum of recomputation alone by another program than ours.
std::string solver_line(const std::string& file) {
  const SolverAnswer answer = solve_program(file);
  const std::string overhead =
      answer.overhead ? formatted(", %.2f %% more", 100 * *answer.overhead) : "";
  return "cbc               " + answer.status + overhead + " by recomputation alone\n";
}

void run_plan_graph(const PlanGraphOptions& options, ExitCode& exit_code) {
  const remat::Instance instance = remat::read_instance(options.file, options.instance);
  remat::PlanReport report{.instance = &instance, .planner = options.planner};
  report.request.budget = budget_of(options, instance);
  if (!options.no_swap) report.request.link = link_of(options, instance);
  if (!options.host_memory.empty())
    report.request.host_bytes = bytes_of("--host-memory", options.host_memory).value();
  report.request.effort = options.effort == "fast" ? remat::Effort::fast : remat::Effort::thorough;
  report.result =
      remat::make_plan(*remat::make_planner(options.planner), instance.graph, report.request);
  if (!options.program.empty()) write_program(instance.graph, report.request, options.program);
  if (!options.report_file.empty())
    write_output_file(options.report_file, graph_plan_page(report, TESSERA_VERSION));
  std::string text =
      options.format == "json" ? remat::plan_json(report) : remat::plan_table(report);
  if (options.solve && options.format != "json") text += solver_line(options.program);
  print(options.format == "json" ? text : for_people(text));
  if (!report.result.feasible) exit_code = ExitCode::does_not_fit;
}

}  // namespace

void add_plan_graph_command(CLI::App& plan, ExitCode& exit_code) {
  auto options = std::make_shared<PlanGraphOptions>();
  CLI::App* command = plan.add_subcommand(
      "graph", "Make a graph of operators fit a memory budget by recomputation and swapping");
  command->add_option("FILE", options->file, "JSON graph or DTR operator log")->required();
  command->add_option("--instance", options->instance, "which graph of a file of many, from 0");
  command->add_option("--budget", options->budget,
                      "memory of the device, what is always held included, for instance 8GiB, or "
                      "with 60% of what is held above that without a plan");
  command->add_option("--planner", options->planner, "who plans (default tessera)")
      ->check(CLI::IsMember(remat::planner_names()));
  command->add_flag("--no-swap", options->no_swap, "recomputation alone");
  command->add_option("--link", options->link, "to host memory, per direction (default 12 GB/s)");
  command->add_option("--link-latency", options->latency,
                      "of every copy (default 10 us; 0 s for golden graphs)");
  command->add_flag("--half-duplex", options->half_duplex, "both directions share the link");
  command->add_option("--host-memory", options->host_memory, "for copies (default: unlimited)");
  command->add_option("--effort", options->effort, "fast or thorough (default)")
      ->check(CLI::IsMember({"fast", "thorough"}));
  CLI::Option* program = command->add_option(
      "--program", options->program,
      "write recomputation alone as an integer program, LP or .mps, for other solvers");
  command->add_flag("--solve", options->solve, "solve it with COIN-OR's cbc (table only)")
      ->needs(program);
  command->add_option("--report", options->report_file,
                      "write the plan as a self-contained HTML page");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] { run_plan_graph(*options, exit_code); });
}

void add_plan_command(CLI::App& app, ExitCode& exit_code) {
  CLI::App* plan = app.add_subcommand(
      "plan", "Plan layouts over GPUs, and memory: what to recompute, what to swap");
  plan->require_subcommand(1);
  add_plan_parallelism_command(*plan, exit_code);
  add_plan_graph_command(*plan, exit_code);
  add_plan_memory_command(*plan, exit_code);
  add_plan_batch_command(*plan);
  add_plan_clocks_command(*plan);
  add_plan_micro_batches_command(*plan, exit_code);
  add_plan_export_command(*plan, exit_code);
}

}  // namespace tessera
