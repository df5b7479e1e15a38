#include <filesystem>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands.h"
#include "lab/validate/host_calibration.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

struct CalibrateHostOptions {
  std::string trace;
  std::string cpu;
  std::string name;
  std::string out;
  std::string format;
};

void run_calibrate_host(const CalibrateHostOptions& options) {
  const HostTrace trace = read_host_trace(options.trace);
  HostTable host = host_table_of(trace);
  host.name =
      options.name.empty() ? std::filesystem::path(options.out).stem().string() : options.name;
  host.cpu = options.cpu;
  host.source = std::filesystem::path(options.trace).filename().string();
  replace_file(options.out, host_yaml(host));
  print(options.format == "json" ? host_calibration_json(host, trace)
                                 : host_calibration_table(host, trace));
  spdlog::info("wrote {}", options.out);
}

}  // namespace

void add_calibrate_host_command(CLI::App& calibrate) {
  auto options = std::make_shared<CalibrateHostOptions>();
  CLI::App* command = calibrate.add_subcommand(
      "host", "Measure what the host takes per call in a trace; write what training.host names");
  command
      ->add_option("--from-trace", options->trace,
                   "of torch.profiler with ProfilerActivity.CPU, JSON or gzip, of one rank")
      ->required();
  command->add_option("-o,--out,--output", options->out, "where the file goes (YAML)")->required();
  command->add_option("--cpu", options->cpu, "processor that ran it, which a trace does not say");
  command->add_option("--name", options->name, "name of the table; the file's otherwise");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_calibrate_host(*options); });
}

}  // namespace tessera
