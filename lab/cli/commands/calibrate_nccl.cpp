#include <memory>
#include <string>
#include <vector>

#include <spdlog/spdlog.h>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands.h"
#include "lab/validate/collectives/calibrate_collectives.h"
#include "sim/collectives/collective_names.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

struct CalibrateNcclOptions {
  std::vector<std::string> logs;
  std::string cluster;
  std::string op;
  std::vector<std::string> where;
  std::string out;
  std::string source;
  std::string format;
  std::optional<double> launch_us;
  CollectiveFitOptions fit;
};

bool is_csv(const std::string& file) {
  return file.ends_with(".csv");
}

/// Rows of a CSV file that have every "column=value".
std::vector<CollectiveRun> chosen_runs(const CalibrateNcclOptions& options) {
  const RowRules rules = row_rules(shipped_catalog());
  std::vector<CollectiveRun> chosen;
  for (const std::string& file : options.logs) {
    for (CollectiveRun& run : read_collective_runs(file, rules)) {
      bool matches = true;
      for (const std::string& condition : options.where) {
        const std::size_t sign = condition.find('=');
        if (sign == std::string::npos)
          throw InputError({"--where", "\"" + condition + "\"", "write column=value"});
        matches = matches && run.field(condition.substr(0, sign)) == condition.substr(sign + 1);
      }
      if (matches) chosen.push_back(std::move(run));
    }
  }
  if (chosen.empty()) throw InputError({"--where", "no row is like that", "compare with the file"});
  return chosen;
}

CollectiveSettings fitted(CalibrateNcclOptions& options) {
  if (options.launch_us) options.fit.launch = Seconds(*options.launch_us * 1e-6);
  const Catalog catalog = shipped_catalog();
  if (std::ranges::all_of(options.logs, is_csv))
    return calibrate_on_runs(chosen_runs(options), catalog, options.fit);
  if (options.cluster.empty())
    throw InputError({"--cluster", "is missing", "name the cluster that was measured"});
  if (!options.op.empty()) {
    options.fit.collective = collective_kind_of(options.op);
    if (!options.fit.collective)
      throw InputError({"--op", "\"" + options.op + "\"", "write for instance all_reduce"});
  }
  std::vector<NcclLog> logs;
  for (const std::string& file : options.logs) logs.push_back(read_nccl_log(file));
  return calibrate_on_logs(logs, load_cluster(options.cluster, catalog), options.fit);
}

void run_calibrate_nccl(CalibrateNcclOptions& options) {
  CollectiveSettings settings = fitted(options);
  if (!options.source.empty()) settings.source = options.source;
  replace_file(options.out, collectives_yaml(settings));
  print(options.format == "json" ? collective_fit_json(settings) : collective_fit_table(settings));
  spdlog::info("wrote {}", options.out);
}

}  // namespace

void add_calibrate_nccl_command(CLI::App& calibrate) {
  auto options = std::make_shared<CalibrateNcclOptions>();
  CLI::App* command = calibrate.add_subcommand(
      "nccl", "Fit collectives to runs of nccl-tests; write what a scenario's collectives: names");
  command
      ->add_option("LOG", options->logs,
                   "output of nccl-tests, text or JSON (-J); or CSV files of docs/collectives.md")
      ->required();
  command
      ->add_option("--cluster", options->cluster,
                   "what was measured: id of tessera list clusters, or a file; needed for logs")
      ->type_name(kClusterId);
  command->add_option("--op", options->op, "collective of logs that do not name it");
  command->add_option("--ranks", options->fit.ranks, "GPUs, of logs that do not list them")
      ->check(CLI::Range(2, 1'000'000));
  command->add_option("--nodes", options->fit.nodes, "nodes, likewise")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--where", options->where, "CSV: only rows with column=value; repeatable");
  command
      ->add_option("--launch-us", options->launch_us,
                   "launch that every measurement contains; found in the small sizes otherwise")
      ->check(CLI::Range(0.0, 1e6));
  command
      ->add_option("--octaves", options->fit.octaves,
                   "between two corrections by size; every size otherwise")
      ->check(CLI::Range(0.25, 64.0));
  command->add_option("--source", options->source, "what the file says of its origin");
  command->add_option("-o,--out,--output", options->out, "where the file goes (YAML)")->required();
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_calibrate_nccl(*options); });
}

}  // namespace tessera
