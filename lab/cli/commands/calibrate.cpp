#include <memory>
#include <string>
#include <thread>

#include <spdlog/spdlog.h>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands.h"
#include "lab/predict/calibration.h"
#include "lab/validate/calibrate_steps.h"
#include "lab/validate/calibration_text.h"
#include "lab/validate/runs/training_run_scenario.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

struct CalibrateOptions {
  std::string gpu;
  std::string kernels_file;
  std::string steps_file;
  std::string weights_file;
  std::string overlay_file;
  std::string format;
};

template <class Calibration>
void write_calibration(const CalibrateOptions& options, Calibration calibration) {
  calibration.overlay.tool_version = TESSERA_VERSION;
  replace_file(options.overlay_file, overlay_yaml(calibration.overlay));
  print(options.format == "json" ? calibration_json(calibration) : calibration_table(calibration));
  spdlog::info("wrote {}", options.overlay_file);
}

void run_calibrate(const CalibrateOptions& options) {
  const Catalog catalog = shipped_catalog();
  const GpuSpec gpu = load_gpu(options.gpu, catalog);
  const PredictorWeights weights =
      options.weights_file.empty() ? shipped_weights() : load_weights(options.weights_file);
  if (!options.kernels_file.empty()) {
    const MeasurementFile file = read_measurements(options.kernels_file);
    return write_calibration(options, calibrate_from_kernels(file, gpu, weights));
  }
  const FrameworkAliases aliases = framework_aliases(catalog);
  const auto scenario_of = [&](const TrainingRun& run) {
    return scenario_of_training_run(run, aliases, catalog);
  };
  const int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  write_calibration(
      options, calibrate_from_steps(read_timed_steps(options.steps_file, row_rules(catalog), gpu.id,
                                                     {.catalog = catalog}),
                                    scenario_of, gpu, weights, jobs));
}

}  // namespace

namespace {

void add_calibrate_gpu(CLI::App& calibrate) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = calibrate.add_subcommand(
      "gpu", "Fit the effect of one GPU to measurements of it; write an overlay");
  command->add_option("--gpu", options->gpu, "id of tessera list gpus, or a file")
      ->type_name(kGpuId)
      ->required();
  auto* sources = command->add_option_group("source", "one of");
  sources->add_option("--from-kernels", options->kernels_file,
                      "timed kernels (CSV, docs/validation.md)");
  sources->add_option("--from-steps", options->steps_file,
                      "timed training steps (CSV, docs/calibration.md)");
  sources->require_option(1);
  command->add_option("-o,--out,--output", options->overlay_file, "where the overlay goes (YAML)")
      ->required();
  command->add_option("--weights", options->weights_file, "trained weights other than the shipped");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_calibrate(*options); });
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Fit a model to measurements; write a file that corrects it");
  command->require_subcommand(1);
  add_calibrate_gpu(*command);
  add_calibrate_nccl_command(*command);
  add_calibrate_host_command(*command);
}

}  // namespace tessera
