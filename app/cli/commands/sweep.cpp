// `tessera sweep`: many variants of a scenario.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "app/cli/commands.h"
#include "app/cli/points_report.h"
#include "app/shell/home.h"
#include "app/shell/interrupt.h"
#include "app/shell/output.h"
#include "app/sweep/run_sweep.h"
#include "app/sweep/slurm.h"
#include "app/sweep/sweep_folder.h"
#include "app/sweep/sweep_text.h"
#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "hw/units/program_file.h"
#include "hw/units/read_file.h"
#include "hw/units/text.h"
#include "sim/config/shipped_file.h"
#include "sim/formats/output_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct SweepOptions {
  std::string file;
  std::string folder;
  std::string format;
  std::string report_file;
  std::string shard = "1/1";
  std::string limit_text = "10 min";
  PointChoice choice;
  int jobs = 0;
  bool dry_run = false;
  bool resume = false;
  int slurm_tasks = 0;
  std::vector<std::string> slurm_options;
  bool no_wait = false;
};

/// On a terminal one line that is written over, elsewhere a line per tenth.
class SweepProgress {
 public:
  void show(const SweepCounts& counts) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const bool last = counts.done() == counts.total;
    if (isatty(STDERR_FILENO) != 0) {
      if (!last && now - shown_ < std::chrono::milliseconds(100)) return;
      shown_ = now;
      const std::string text =
          progress_text(counts, seconds).substr(0, width_of(STDERR_FILENO) - 1);
      std::fprintf(stderr, "\r%s\033[K%s", text.c_str(), last ? "\n" : "");
      return;
    }
    const auto tenth = counts.done() * 10 / std::max<std::int64_t>(counts.total, 1);
    if (tenth == tenth_) return;
    tenth_ = tenth;
    spdlog::info("{}", progress_text(counts, seconds));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_{};
  std::int64_t tenth_ = 0;
};

void read_shard(const std::string& text, PointChoice& choice) {
  char rest = '\0';
  const int read = std::sscanf(text.c_str(), "%d/%d%c", &choice.shard, &choice.shards, &rest);
  if (read != 2 || choice.shard < 1 || choice.shards < choice.shard || choice.shards > 100000)
    throw InputError({"--shard", "is " + text, "write i/n with i from 1 to n, such as 1/4"});
}

int jobs_of(const SweepOptions& options) {
  if (options.jobs > 0) return options.jobs;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

ExitCode check_points(const SweepOptions& options, const SweepSpec& spec, const SweepGrid& grid,
                      const ScenarioSource& source) {
  const auto numbers = chosen_points(grid, spec, options.choice);
  const SweepCounts counts = check_sweep(grid, source, numbers);
  print(sweep_counts_text(counts) +
        std::to_string(counts.total - counts.invalid - counts.left_out) + " to simulate\n");
  return ExitCode::ok;
}

std::chrono::duration<double> time_limit(const std::string& text) {
  try {
    const double seconds = parse_seconds(text).value();
    if (seconds > 0) return std::chrono::duration<double>(seconds);
  } catch (const InputError& error) {
    throw InputError({"--time-limit", error.problems().front().what, "write 30 s or 10 min"});
  }
  throw InputError({"--time-limit", "is " + text, "give more than 0 s"});
}

constexpr const char* kOwnFile = "it is Tessera's own: install it anew";

/// What results depend on besides the scenario: this program and the weights, by their bytes.
std::string made_with() {
  return std::string(TESSERA_VERSION) + " " +
         std::to_string(fnv1a(read_whole_file(program_file(), kOwnFile))) + " " +
         std::to_string(fnv1a(read_whole_file(weights_file(), kOwnFile)));
}

ExitCode merge_shards(const SweepFolder& folder, const std::string& format) {
  const auto store = folder.merge();
  folder.export_results(*store, format);
  print(std::to_string(store->points()) + " points of " +
        std::to_string(folder.shard_files().size()) + " shards merged\n");
  return ExitCode::ok;
}

/// What every task of the job array gets.
std::vector<std::string> shard_options(const SweepOptions& options) {
  std::vector<std::string> words = {"--time-limit", options.limit_text};
  const auto add = [&](const char* name, const auto& value) {
    words.insert(words.end(), {name, std::to_string(value)});
  };
  if (options.choice.limit) add("--limit", *options.choice.limit);
  if (options.choice.sample) add("--sample", *options.choice.sample);
  if (options.choice.sample) add("--seed", options.choice.seed);
  return words;
}

ExitCode run_on_slurm(const SweepOptions& options) {
  read_sweep(options.file, shipped_catalog());
  const SlurmSweep sweep{.program = program_beside(program_file(), "tessera"),
                         .sweep = fs::absolute(options.file),
                         .folder = fs::absolute(options.folder),
                         .tasks = options.slurm_tasks,
                         .run_options = shard_options(options),
                         .slurm_options = options.slurm_options};
  const SweepFolder folder(sweep.folder);
  folder.start_shards(sweep.tasks, options.resume);
  const std::string job = submit(sweep, unfinished_shards(sweep));
  spdlog::info("job {} with {} tasks; {}", job, sweep.tasks, sweep.folder.string());
  if (options.no_wait) return ExitCode::ok;
  watch(sweep, job, [](const std::string& line) { spdlog::info("{}", line); });
  return merge_shards(folder, options.format);
}

ExitCode run_sweep_command(SweepOptions options) {
  if (options.file.empty())
    throw InputError(
        {"SWEEP", "is missing", "name a sweep: a file, or one of tessera list sweeps"});
  options.file = shipped_or_own_file(CatalogKind::sweeps, options.file, shipped_catalog());
  read_shard(options.shard, options.choice);
  const SweepSpec spec = read_sweep(options.file, shipped_catalog());
  const ScenarioSource source(spec.base, spec.source, shipped_catalog());
  const SweepGrid grid(spec, source);
  if (options.dry_run) return check_points(options, spec, grid, source);
  if (options.folder.empty())
    throw InputError({"--out", "is missing", "name the folder for the results"});
  if (options.slurm_tasks > 0) return run_on_slurm(options);

  const PredictorWeights weights = shipped_weights();
  SweepRunOptions run{
      .jobs = jobs_of(options), .limit = time_limit(options.limit_text), .made_with = made_with()};
  SweepProgress progress;
  say_on_interrupt("interrupted; what is done is kept: the same command with --resume goes on");
  run.progress = [&](const SweepCounts& counts) { progress.show(counts); };
  const auto numbers = chosen_points(grid, spec, options.choice);
  const SweepFolder folder(options.folder);
  const auto store = folder.open(options.choice, identity_of(spec), options.resume);
  if (store->discarded() > 0)
    spdlog::warn("{}: {} damaged rows are made anew", folder.store_file(options.choice).string(),
                 store->discarded());
  const SweepCounts counts = run_sweep(grid, source, numbers, weights, *store, run);
  if (options.choice.shards == 1) folder.export_results(*store, options.format);
  if (!options.report_file.empty())
    write_output_file(options.report_file, points_page(points_of(*store), TESSERA_VERSION));
  print(for_people(sweep_table(counts, *store)));
  return ExitCode::ok;
}

void add_file_format(CLI::App& command, std::string& format) {
  format = "csv";
  command.add_option("--format", format, "of the results: results.csv or results.jsonl")
      ->check(CLI::IsMember({"csv", "jsonl"}))
      ->capture_default_str();
}

void add_merge_command(CLI::App& sweep, ExitCode& exit_code) {
  auto folder = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>();
  CLI::App* command =
      sweep.add_subcommand("merge", "Put the stores of shards together; again changes nothing");
  command->add_option("DIR", *folder, "what --out named")->required();
  add_file_format(*command, *format);
  command->callback(
      [folder, format, &exit_code] { exit_code = merge_shards(SweepFolder(*folder), *format); });
}

}  // namespace

void add_sweep_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand("sweep", "Simulate many variants of a scenario");
  command
      ->add_option("SWEEP", options->file,
                   "what varies: an id of tessera list sweeps, or a file (docs/sweeps.md)")
      ->type_name(kSweepId);
  command->add_option("-o,--out,--output", options->folder,
                      "folder for results.sqlite and results.csv");
  command->add_flag("--resume", options->resume, "go on where a run ended, keep what is stored");
  command->add_option("--jobs", options->jobs, "simulations at a time (default: one per core)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--time-limit", options->limit_text, "per point (default 10 min)");
  command->add_option("--limit", options->choice.limit, "only the first points")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--sample", options->choice.sample,
                   "so many points, as a Latin hypercube over the axes")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  command->add_option("--seed", options->choice.seed, "of --sample (default 1)");
  command->add_option("--shard", options->shard, "i/n: every n-th point, beginning with the i-th");
  command
      ->add_option("--slurm", options->slurm_tasks,
                   "submit the sweep to Slurm as a job array of so many tasks, wait and merge")
      ->check(CLI::Range(1, 100000));
  command
      ->add_option("--slurm-option", options->slurm_options,
                   "of sbatch, such as --slurm-option=--partition=cpu; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--no-wait", options->no_wait, "submit to Slurm and return");
  command->add_flag("--dry-run", options->dry_run, "check every point, simulate none");
  command->add_option("--report", options->report_file, "write the results as an HTML page");
  add_file_format(*command, options->format);
  add_merge_command(*command, exit_code);
  command->callback([command, options, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = run_sweep_command(*options);
  });
}

}  // namespace tessera
