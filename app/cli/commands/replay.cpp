// tessera replay: execution traces of other programs on a cluster.
#include <filesystem>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/html/step_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "sim/config/load.h"
#include "sim/formats/chakra/chakra_replay.h"
#include "sim/formats/output_file.h"
#include "sim/formats/perfetto.h"
#include "sim/report/drawings/timeline_svg.h"
#include "sim/report/json.h"
#include "sim/report/text/table.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

struct ReplayOptions {
  std::string prefix;
  std::string groups_file;
  std::string cluster;
  std::string collectives;
  std::string precision = "bf16";
  std::string format;
  std::string trace_file;
  std::string picture_file;
  std::string report_file;
  bool notes = false;
};

Provenance provenance_of(const ReplayOptions& options, const ChakraJob& job) {
  return {.scenario = std::filesystem::path(options.prefix).filename().string(),
          .model = "Chakra traces " + job.ranks.front().version,
          .mode = "replayed",
          .framework = "trace",
          .recompute = "none",
          .predictor = "trace",
          .predictor_mode = "replayed",
          .predictor_effect = "kernels take the durations of the traces",
          .predictor_notes = {},
          .tessera_version = TESSERA_VERSION};
}

void run_replay(const ReplayOptions& options) {
  const Catalog catalog = shipped_catalog();
  ReplaySettings settings{.cluster = load_cluster(options.cluster, catalog), .collectives = {}};
  if (!options.collectives.empty())
    settings.collectives = load_collectives(options.collectives, catalog);
  settings.precision = parse_precision(options.precision);
  const ChakraJob job = read_chakra_job(options.prefix, options.groups_file);
  const ChakraReplay replay = replay_chakra(job, settings);
  for (const std::string& note : replay.notes) spdlog::warn("{}", note);
  const auto& [timed, timeline, report] = run_step(replay.timed, Recording::every_change);
  const Provenance provenance = provenance_of(options, job);
  if (!options.trace_file.empty()) write_perfetto_trace(options.trace_file, timed, timeline);
  if (!options.picture_file.empty())
    write_output_file(options.picture_file,
                      timeline_svg(timed, timeline, {.title = provenance.scenario}));
  if (!options.report_file.empty())
    write_output_file(options.report_file, step_page(report, provenance, timed, timeline));
  if (options.format == "json")
    print(json_text(report, provenance, {}));
  else
    print_styled(table_text(report, provenance, text_style(options.notes)));
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      app.add_subcommand("replay", "Simulate Chakra execution traces (0.0.4, 1.0.0) on a cluster");
  command->add_option("PREFIX", options->prefix, "of PREFIX.0.et, PREFIX.1.et, ...")->required();
  command->add_option("--cluster", options->cluster, "id of tessera list clusters, or a file")
      ->type_name(kClusterId)
      ->required();
  command->add_option("--groups", options->groups_file,
                      "ranks of every pg_name: {\"1\": [0, 1]}; else PREFIX.groups.json");
  command->add_option("--collectives", options->collectives,
                      "measured collectives, of tessera calibrate nccl");
  command
      ->add_option("--precision", options->precision,
                   "of the peak for nodes that give work and no duration")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16", "fp8"}))
      ->capture_default_str();
  add_format_option(*command, options->format, {"table", "json"});
  command->add_option("--trace", options->trace_file,
                      "write the timeline for ui.perfetto.dev (.json, .json.gz, .pftrace)");
  command->add_option("--picture", options->picture_file, "write the timeline as SVG");
  command->add_option("--report", options->report_file,
                      "write a self-contained HTML report for a browser");
  add_notes_option(*command, options->notes);
  command->callback([options] { run_replay(*options); });
}

}  // namespace tessera
