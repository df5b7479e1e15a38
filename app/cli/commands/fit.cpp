// `tessera fit`: whether a step fits into the memory of its GPUs, and what to do where it does not.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/commands.h"
#include "app/fit/fit_answer.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"

namespace tessera {
namespace {

struct FitCommand {
  std::string what;
  JobOptions job;
  std::vector<std::string> definitions;
  std::vector<std::string> overrides;
  int jobs = 0;
  bool plans = false;
  std::string format;
};

void define_variable(const std::string& definition, JobOptions& options) {
  const auto equals = definition.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError({"--define " + definition, "has no value", "write NAME=VALUE"});
  options.variables[definition.substr(0, equals)] = definition.substr(equals + 1);
}

ExitCode run_fit(FitCommand command) {
  for (const std::string& definition : command.definitions)
    define_variable(definition, command.job);
  const FitJob job(command.what, command.job, command.overrides, shipped_catalog());
  FitOptions options{.jobs = command.jobs, .plans = command.plans};
  if (options.jobs == 0)
    options.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const FitAnswer answer = answer_fit(job, shipped_weights(), options);
  print(command.format == "json" ? fit_json(answer) : for_people(fit_text(answer)));
  // As `simulate` says of the same step, whatever the error of either may be.
  return answer.step.margin() < Bytes() ? ExitCode::does_not_fit : ExitCode::ok;
}

/// What a model alone, or a file of another program, leaves open.
void add_job_options(CLI::App& command, FitCommand& options) {
  JobOptions& job = options.job;
  const auto size = CLI::Range(std::int64_t{1}, std::int64_t{100'000'000});
  command.add_option("--model", job.model, "of a file that does not describe it: id or file");
  command.add_option("--gpus", job.gpus, "GPUs of the job (default: all of the cluster)")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--nodes", job.nodes, "of the cluster (default: as many as it has)")
      ->check(CLI::Range(1, 100'000));
  command.add_option("--framework", job.framework, "id of tessera list frameworks, or a file");
  command.add_option("--sequence-length", job.sequence_length, "tokens per sequence")->check(size);
  command.add_option("--global-batch", job.global_batch, "sequences per step")->check(size);
  command.add_option("--micro-batch", job.micro_batch, "sequences per micro-batch")->check(size);
  command.add_flag("--lenient", job.lenient,
                   "leave out what a scenario cannot say; the answer says approximate");
  command
      .add_option("--define", options.definitions,
                  "NAME=VALUE of a launch script's variable; repeatable")
      ->allow_extra_args(false);
  command.add_option("--args", job.arguments, "\"...\": a launch script's arguments, $1 and on");
  command.add_option("--vocab", job.vocabulary, "tokens of a launch script's vocabulary")
      ->check(size);
}

}  // namespace

void add_fit_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<FitCommand>();
  CLI::App* command = app.add_subcommand(
      "fit", "Say whether a step fits into the GPUs' memory, what holds it, what makes it fit");
  command
      ->add_option("WHAT", options->what,
                   "model (id, file, Hugging Face's config.json), launch script, scenario")
      ->required();
  command->add_option("CLUSTER,--cluster", options->job.cluster,
                      "id of tessera list clusters, or a file; a scenario names its own");
  add_set_option(*command, options->overrides);
  add_job_options(*command, *options);
  command->add_flag("--plans", options->plans,
                    "look at memory plans and at offload too, for seconds");
  command->add_option("--jobs", options->jobs, "simulations at a time (default: one per core)")
      ->check(CLI::Range(1, 1024));
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options, &exit_code] { exit_code = run_fit(*options); });
}

}  // namespace tessera
