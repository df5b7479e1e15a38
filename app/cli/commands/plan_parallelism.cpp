// `tessera plan parallelism`: how to lay a model out over a cluster.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/cli/points_report.h"
#include "app/cli/price_list.h"
#include "app/fit/memory_spread.h"
#include "app/search/search_answer.h"
#include "app/shell/home.h"
#include "app/shell/interrupt.h"
#include "app/shell/output.h"
#include "app/shell/parsed_option.h"
#include "app/shell/progress.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"
#include "sim/formats/output_file.h"
#include "workloads/model_spec.h"

namespace tessera {
namespace {

struct PlanParallelismOptions {
  std::string models, clusters;  ///< separated by commas
  std::int64_t global_batch = 0;
  std::string sequence_length;
  std::string precision;  ///< empty: what the GPU has
  std::string framework = "megatron";
  std::vector<std::string> overrides;
  std::vector<std::string> prices;  ///< GPU=USD
  LayoutSpace space;
  std::vector<std::string> schedules, sharding, recompute;
  std::string gpus;
  std::size_t top = 5;
  int jobs = 0;
  std::string limit;
  std::string objective = "time";
  double tokens = 0;
  std::string deadline;
  std::optional<double> efficiency_floor;
  std::string report_file;
  std::string format;
};

std::vector<std::string> words_between_commas(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// "8:1024:2x" (times two from 8 to 1024), "8:64:8" (in steps), "8,24,96"; empty: the cluster's.
std::vector<int> gpu_counts(const std::string& text) {
  const InputError wrong({"--gpus", "is " + text, "write 64, 8,24,96, 8:64:8 or 8:1024:2x"});
  int first = 0, last = 0, step = 0;
  char unit = '\0', rest = '\0';
  const int read = std::sscanf(text.c_str(), "%d:%d:%d%c%c", &first, &last, &step, &unit, &rest);
  std::vector<int> counts;
  if (read == 3 || (read == 4 && unit == 'x')) {
    if (first < 1 || last < first || step < (read == 4 ? 2 : 1)) throw wrong;
    for (std::int64_t count = first; count <= last; count = read == 4 ? count * step : count + step)
      counts.push_back(static_cast<int>(count));
    return counts;
  }
  for (const std::string& word : words_between_commas(text)) {
    if (std::sscanf(word.c_str(), "%d%c", &first, &rest) != 1 || first < 1) throw wrong;
    counts.push_back(first);
  }
  return counts;
}

/// Words of an option as values of an enumeration, by their positions in `names`.
template <class Value>
std::vector<Value> values_of(const std::vector<std::string>& words,
                             const std::vector<std::string>& names) {
  std::vector<Value> values;
  for (const std::string& word : words)
    values.push_back(static_cast<Value>(std::ranges::find(names, word) - names.begin()));
  return values;
}

/// "plan": a memory plan where `none` does not fit.
constexpr const char* kPlan = "plan";
std::vector<std::string> recompute_words() {
  std::vector<std::string> words = recompute_names();
  words.emplace_back(kPlan);
  return words;
}
const std::vector<std::string> kObjectives = {"time", "tokens-per-dollar", "energy"};

/// Of the options, else what people train in on the cluster's GPUs.
std::string precision_on(const std::string& cluster, const PlanParallelismOptions& options) {
  if (!options.precision.empty()) return options.precision;
  const ClusterSpec described = cluster_with(cluster, options.overrides, shipped_catalog());
  return std::string(name_of(usual_precision(described.node.gpu)));
}

Scenario base_with(const std::string& sequence_length, const PlanParallelismOptions& options,
                   const std::string& model, const std::string& cluster) {
  std::vector<std::string> settings = {
      "model=" + model,
      "cluster=" + cluster,
      "training.framework=" + options.framework,
      "training.precision=" + precision_on(cluster, options),
      "training.global_batch=" + std::to_string(options.global_batch),
      "training.micro_batch=1",
      "training.sequence_length=" + sequence_length};
  settings.insert(settings.end(), options.overrides.begin(), options.overrides.end());
  return scenario_of(settings, model + " on " + cluster, shipped_catalog());
}

/// Sequences are by default as long as the model's learned positions reach.
Scenario base_of(const PlanParallelismOptions& options, const std::string& model,
                 const std::string& cluster) {
  if (!options.sequence_length.empty())
    return base_with(options.sequence_length, options, model, cluster);
  constexpr std::int64_t kOfRotary = 4096;
  const std::int64_t positions = base_with("1", options, model, cluster).model.max_positions;
  Scenario base =
      base_with(std::to_string(positions > 0 ? positions : kOfRotary), options, model, cluster);
  spdlog::info("{}: sequences of {} tokens (--sequence-length)", model, base.step.sequence_length);
  return base;
}

/// "llama-3-70b on dgx-h100-x8-rail: 31 simulated, best 14.7 s, 13.5 s still open: tp 4 pp 4 ..."
std::string status_text(const std::string& title, const SearchResult& found) {
  std::string text = title + ": " + std::to_string(found.counts.simulated) + " simulated";
  if (found.fitting.empty()) return text;
  const LayoutResult& best = found.fitting.front();
  text += ", best " + to_short_text(best.step_time);
  if (found.open_bound && found.open_bound->value() > 0)
    text += ", " + to_short_text(*found.open_bound) + " still open";
  return text + ": " + to_text(best.layout);
}

SearchOptions search_options(const PlanParallelismOptions& options, std::size_t top) {
  SearchOptions search{.top = top, .jobs = options.jobs};
  if (search.jobs == 0)
    search.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (!options.limit.empty())
    search.limit = std::chrono::duration<double>(
        parsed_option("--time-limit", options.limit, parse_seconds).value());
  return search;
}

/// What is searched, before it is.
struct CaseToSearch {
  std::shared_ptr<const Scenario> base;
  SearchCase of;
};

CaseToSearch case_of(const std::shared_ptr<const Scenario>& base, int gpus,
                     const PriceList& prices) {
  const GpuSpec& gpu = base->cluster.node.gpu;
  const MemorySpread spread = memory_spread(*base);
  SearchCase of{
      .model = base->model.name,
      .cluster = base->cluster.id,
      .gpu = gpu.id,
      .gpus = gpus > 0 ? gpus : base->cluster.gpu_count(),
      .parameters = static_cast<double>(parameter_count(base->model)),
      .tokens_per_step = static_cast<double>(base->step.global_batch * base->step.sequence_length),
      .gpu_memory = gpu.memory,
      .economy = Economy::of(gpu),
      .found = {},
      .framework = base->step.framework.name,
      .precision = std::string(name_of(base->step.precision)),
      .sequence_length = base->step.sequence_length,
      .global_batch = base->step.global_batch,
      .approximations = base->approximations,
      .memory_high = spread.high,
      .memory_basis = spread.basis};
  const int per_node = base->cluster.node.gpu_count;
  if (of.gpus > base->cluster.gpu_count())
    throw InputError({"--gpus",
                      std::to_string(of.gpus) + " of cluster " + of.cluster + ", which has " +
                          std::to_string(base->cluster.gpu_count()),
                      "name a larger cluster, or --nodes " +
                          std::to_string((of.gpus + per_node - 1) / per_node)});
  const auto price = prices.find(gpu.id);
  if (price != prices.end()) of.economy.dollars_per_gpu_hour = price->second;
  return {base, std::move(of)};
}

/// All that can be wrong with a question is found here, before the first search.
std::vector<CaseToSearch> cases_of(const PlanParallelismOptions& options,
                                   const SearchQuestion& question) {
  const std::vector<int> counts =
      options.gpus.empty() ? std::vector<int>{0} : gpu_counts(options.gpus);
  const PriceList prices = parsed_prices(options.prices);
  std::vector<CaseToSearch> cases;
  for (const std::string& model : words_between_commas(options.models)) {
    for (const std::string& cluster : words_between_commas(options.clusters)) {
      const auto base = std::make_shared<const Scenario>(base_of(options, model, cluster));
      for (const int gpus : counts) cases.push_back(case_of(base, gpus, prices));
    }
  }
  std::vector<std::string> gpus;
  std::vector<SearchCase> unsearched;
  for (const CaseToSearch& each : cases) {
    gpus.push_back(each.of.gpu);
    unsearched.push_back(each.of);
  }
  check_used(prices, gpus);
  check_comparable(question, unsearched);
  return cases;
}

/// FSDP, as torchtitan has it alone, divides gradients or parameters.
void check_sharding(const FrameworkProfile& profile, const LayoutSpace& space) {
  const bool asks = std::ranges::find(space.sharding, Sharding::optimizer) != space.sharding.end();
  if (asks && profile.tensor_plan == TensorPlan::sequence)
    throw InputError({"--sharding optimizer",
                      "is ZeRO-1: " + profile.name + " divides by FSDP, which has none",
                      "use none, gradients or parameters"});
}

/// Ctrl-C ends the search under way and those that follow with what they have found.
std::vector<SearchCase> searched(const PlanParallelismOptions& options,
                                 std::vector<CaseToSearch> cases, const InterruptNote& ctrl_c) {
  const PredictorWeights weights = shipped_weights();
  SearchOptions search = search_options(options, cases.size() > 1 ? 1 : options.top);
  search.interrupted = [&] { return ctrl_c.interrupted(); };
  std::vector<SearchCase> found;
  for (CaseToSearch& each : cases) {
    StatusLine status;
    search.progress = [&](const SearchResult& so_far) {
      if (status.is_due()) status.show(status_text(each.base->name, so_far));
    };
    LayoutSpace space = options.space;
    space.gpus = each.of.gpus;
    check_sharding(each.base->step.framework, space);
    each.of.found = search_layouts(*each.base, space, weights, search);
    found.push_back(std::move(each.of));
  }
  return found;
}

SearchQuestion question_of(const PlanParallelismOptions& options) {
  SearchQuestion question{
      .objective = values_of<SearchObjective>({options.objective}, kObjectives)[0],
      .tokens = options.tokens,
      .deadline = std::nullopt,
      .efficiency_floor = options.efficiency_floor};
  if (options.deadline.empty()) return question;
  if (options.tokens <= 0)
    throw InputError({"--deadline", "without --tokens", "say how many tokens are due by then"});
  question.deadline = parsed_option("--deadline", options.deadline, parse_seconds);
  return question;
}

void take_recompute(PlanParallelismOptions& options) {
  std::vector<std::string> words = options.recompute;
  options.space.plans = std::erase(words, kPlan) > 0;
  const std::string none(name_of(Recompute::none));
  const bool has_none = std::ranges::find(words, none) != words.end();
  if (options.space.plans && !has_none) words.push_back(none);
  options.space.recompute = values_of<Recompute>(words, recompute_names());
}

ExitCode exit_code_of(const std::vector<SearchCase>& cases) {
  const auto ended = [&](SearchEnd end) {
    return std::ranges::any_of(cases, [&](const SearchCase& of) { return of.found.end == end; });
  };
  if (ended(SearchEnd::interrupted)) return ExitCode::interrupted;
  if (std::ranges::any_of(cases, [](const SearchCase& of) { return of.best() != nullptr; }))
    return ExitCode::ok;
  return ended(SearchEnd::out_of_time) ? ExitCode::out_of_time : ExitCode::does_not_fit;
}

ExitCode run_plan_parallelism(PlanParallelismOptions options) {
  options.space.schedules = values_of<PipelineSchedule>(options.schedules, schedule_names());
  options.space.sharding = values_of<Sharding>(options.sharding, sharding_names());
  take_recompute(options);
  const SearchQuestion question = question_of(options);
  const InterruptNote ctrl_c;
  const std::vector<SearchCase> cases = searched(options, cases_of(options, question), ctrl_c);
  print(options.format == "json" ? search_json(question, cases, options.top)
                                 : for_people(search_text(question, cases, options.top)));
  if (!options.report_file.empty())
    write_output_file(options.report_file, points_page(points_of(cases), TESSERA_VERSION));
  return exit_code_of(cases);
}

void add_space_options(CLI::App& command, PlanParallelismOptions& options) {
  const auto sizes = [&](const char* name, auto& values, const char* about) {
    command.add_option(name, values, about)->delimiter(',')->check(CLI::Range(1, 1'000'000));
  };
  sizes("--tensor", options.space.tensor, "sizes to try, as 1,2,4,8; default: all that are legal");
  sizes("--pipeline", options.space.pipeline, "likewise");
  sizes("--virtual-stages", options.space.virtual_stages, "likewise");
  sizes("--context", options.space.context, "likewise");
  sizes("--expert", options.space.expert, "likewise");
  sizes("--micro-batch", options.space.micro_batches, "likewise");
  command.add_option("--schedule", options.schedules, "pipeline schedules to try")
      ->delimiter(',')
      ->check(CLI::IsMember(schedule_names()));
  command.add_option("--sharding", options.sharding, "what replicas may divide (ZeRO)")
      ->delimiter(',')
      ->check(CLI::IsMember(sharding_names()));
  command
      .add_option("--recompute", options.recompute,
                  "what may be recomputed; plan: nothing, or what a memory plan chooses where that "
                  "does not fit")
      ->delimiter(',')
      ->check(CLI::IsMember(recompute_words()));
}

void add_question_options(CLI::App& command, PlanParallelismOptions& options) {
  command.add_option("--gpus", options.gpus, "how many of the cluster: 64, 8,24,96 or 8:1024:2x");
  command
      .add_option_function<int>(
          "--nodes",
          [&options](int nodes) {
            options.overrides.insert(options.overrides.begin(),
                                     "cluster.node_count=" + std::to_string(nodes));
          },
          "of the clusters (default: as many as they have)")
      ->check(CLI::Range(1, 100'000));
  command
      .add_option(
          "--price", options.prices,
          "GPU=USD per GPU and hour, as H100-SXM5-80GB=2.5; before the catalog's; repeatable")
      ->allow_extra_args(false);
  command.add_option("--objective", options.objective, "what the best of several cases is best in")
      ->check(CLI::IsMember(kObjectives))
      ->capture_default_str();
  command.add_option("--tokens", options.tokens, "to train on, as 300e9")
      ->check(CLI::Range(1.0, 1e18));
  command.add_option("--deadline", options.deadline,
                     "the cheapest case that has trained on --tokens by then, as 720h");
  command
      .add_option("--efficiency-floor", options.efficiency_floor,
                  "say from how many GPUs on tokens/s and GPU fall below this share of the "
                  "fewest's, as 0.8")
      ->check(CLI::Range(0.0, 1.0));
}

}  // namespace

void add_plan_parallelism_command(CLI::App& plan, ExitCode& exit_code) {
  auto options = std::make_shared<PlanParallelismOptions>();
  CLI::App* command = plan.add_subcommand(
      "parallelism", "Find the fastest layouts of a model on a cluster (docs/search.md)");
  command
      ->add_option("MODEL", options->models,
                   "id of tessera list models, or a file; several as a,b,c")
      ->type_name(kModelId)
      ->required();
  command
      ->add_option("CLUSTER", options->clusters,
                   "id of tessera list clusters, or a file; several as a,b,c")
      ->type_name(kClusterId)
      ->required();
  command->add_option("--global-batch", options->global_batch, "sequences per step")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
  command->add_option("--sequence-length", options->sequence_length,
                      "tokens per sequence (default: as far as the model's positions reach, 4096 "
                      "where it has none)");
  command->add_option("--precision", options->precision,
                      "of products (default: bf16, on GPUs without it fp16, else fp32)");
  command->add_option("--framework", options->framework, "profile")->capture_default_str();
  add_set_option(*command, options->overrides);
  command->add_option("--top", options->top, "so many layouts are proven the fastest")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  add_space_options(*command, *options);
  add_question_options(*command, *options);
  command->add_option("--jobs", options->jobs, "simulations at a time (default: one per core)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--time-limit", options->limit,
                      "of a search, as 2min; then, as after Ctrl-C, the answer is what was found, "
                      "unproven");
  command->add_option("--report", options->report_file, "write what was simulated as an HTML page");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] { exit_code = run_plan_parallelism(*options); });
}

}  // namespace tessera
