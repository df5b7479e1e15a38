// tessera expect: whether steps still take what they took, for continuous integration.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/commands.h"
#include "app/expect/run_check.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "app/shell/progress.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/formats/output_file.h"

namespace tessera {
namespace {

struct ExpectOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string tolerance = "5%";
  std::string format;
  bool record = false;
  int jobs = 0;
};

/// "5%" or "0.05".
double share_of(const std::string& text) {
  const bool percent = text.ends_with('%');
  try {
    std::size_t used = 0;
    const double value = std::stod(text, &used);
    const bool whole = used == text.size() - (percent ? 1 : 0);
    if (whole && value >= 0 && value < 1e6) return percent ? value / 100 : value;
  } catch (const std::logic_error&) {  // no number, or one too large
  }
  throw InputError({"--tolerance", "is '" + text + "'", "give a share, as 5% or 0.05"});
}

ExitCode run_expect(const ExpectOptions& options) {
  const double tolerance = share_of(options.tolerance);
  auto runs = read_expected_runs(options.file, options.overrides, shipped_catalog());
  const std::size_t count = runs.size();
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  StatusLine status;
  const auto checks =
      check_runs(std::move(runs), shipped_weights(), options.jobs > 0 ? options.jobs : cores,
                 [&](std::size_t done) { status.show(done, count, "runs"); });
  if (options.record) write_output_file(options.file, recorded_csv(checks));
  print(options.format == "json" ? json_text(checks, tolerance)
                                 : for_people(table_text(checks, tolerance)));
  const bool within =
      std::ranges::all_of(checks, [&](const RunCheck& check) { return check.within(tolerance); });
  return within || options.record ? ExitCode::ok : ExitCode::out_of_tolerance;
}

}  // namespace

void add_expect_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ExpectOptions>();
  CLI::App* command = app.add_subcommand(
      "expect", "Whether steps still take what a table says; exit code 5 where one does not");
  command
      ->add_option("RUNS", options->file,
                   "CSV with columns scenario, step_time_s and, if you like, settings")
      ->required();
  add_set_option(*command, options->overrides);
  command->add_option("--tolerance", options->tolerance, "as 5% or 0.05")->capture_default_str();
  command->add_flag("--record", options->record,
                    "write what is simulated now into the table, with the time of every phase");
  command->add_option("--jobs", options->jobs, "processes at a time; 0: one per core")
      ->check(CLI::Range(0, 10000));
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] { exit_code = run_expect(*options); });
}

}  // namespace tessera
