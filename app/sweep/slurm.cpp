#include "app/sweep/slurm.h"

#include <chrono>
#include <numeric>
#include <system_error>
#include <thread>

#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"
#include "sim/process/command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxSubmissions = 5;
constexpr auto kPollInterval = std::chrono::seconds(2);

/// For a shell.
std::string quoted_word(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string stem_of(int shard, int tasks) {
  return "shard-" + std::to_string(shard) + "-of-" + std::to_string(tasks);
}

CommandResult slurm(const std::vector<std::string>& arguments) {
  CommandResult result = run_command(arguments);
  if (result.exit_code == 127)
    throw InputError(Problem{"--slurm", "there is no program " + arguments.front(),
                             "run it where Slurm's commands are, or use --shard i/n"});
  return result;
}

/// Whether tasks of the job wait or run. A controller that does not answer for a moment is asked
/// again.
bool is_in_queue(const std::string& job) {
  const CommandResult queue = slurm({"squeue", "--noheader", "--jobs=" + job});
  if (queue.exit_code == 0) return queue.output.find_first_not_of(" \n") != std::string::npos;
  return queue.errors.find("Invalid job id") == std::string::npos;
}

}  // namespace

std::string slurm_script(const SlurmSweep& sweep) {
  const std::string shard = "$SLURM_ARRAY_TASK_ID";
  const std::string of_all = "-of-" + std::to_string(sweep.tasks);
  std::string options;
  for (const std::string& option : sweep.run_options) options += " " + quoted_word(option);
  return "#!/bin/sh\n"
         "#SBATCH --job-name=tessera-sweep\n"
         "#SBATCH --requeue\n"
         "# Made by tessera sweep --slurm: one shard per task of the array.\n"
         "cd " +
         quoted_word(sweep.folder.string()) + " || exit 1\n" + quoted_word(sweep.program.string()) +
         " sweep " + quoted_word(sweep.sweep.string()) +
         " --out . --resume --jobs \"${SLURM_CPUS_PER_TASK:-1}\" --shard \"" + shard + "/" +
         std::to_string(sweep.tasks) + "\"" + options + " &&\n" + "  touch \"shard-" + shard +
         of_all + ".done\"\n";
}

std::vector<int> unfinished_shards(const SlurmSweep& sweep) {
  std::vector<int> shards;
  for (int shard = 1; shard <= sweep.tasks; ++shard)
    if (std::error_code unknown;
        !fs::exists(sweep.folder / (stem_of(shard, sweep.tasks) + ".done"), unknown))
      shards.push_back(shard);
  return shards;
}

std::string array_text(const std::vector<int>& shards) {
  std::string text;
  for (std::size_t begin = 0; begin < shards.size();) {
    std::size_t end = begin;
    while (end + 1 < shards.size() && shards[end + 1] == shards[end] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(shards[begin]);
    if (end > begin) text += "-" + std::to_string(shards[end]);
    begin = end + 1;
  }
  return text;
}

std::string submit(const SlurmSweep& sweep, const std::vector<int>& shards) {
  std::error_code failure;
  fs::create_directories(sweep.folder, failure);
  const fs::path script = sweep.folder / "sweep.sbatch";
  replace_file(script, slurm_script(sweep));
  const fs::path log = sweep.folder / ("shard-%a-of-" + std::to_string(sweep.tasks) + ".log");
  std::vector<std::string> command = {"sbatch", "--parsable", "--open-mode=append",
                                      "--array=" + array_text(shards), "--output=" + log.string()};
  command.insert(command.end(), sweep.slurm_options.begin(), sweep.slurm_options.end());
  command.push_back(script.string());
  const CommandResult result = slurm(command);
  if (result.exit_code != 0)
    throw InputError(
        Problem{"sbatch", "refused the job: " + result.errors.substr(0, 500),
                "give options of sbatch with --slurm-option; the script is " + script.string()});
  // "JOB" or "JOB;CLUSTER".
  return result.output.substr(0, result.output.find_first_of(";\n"));
}

void watch(const SlurmSweep& sweep, std::string job,
           const std::function<void(const std::string&)>& report) {
  std::size_t left = static_cast<std::size_t>(sweep.tasks);
  for (int submissions = 1;;) {
    const bool queued = is_in_queue(job);
    const std::vector<int> unfinished = unfinished_shards(sweep);
    if (unfinished.size() != left) {
      left = unfinished.size();
      report(std::to_string(sweep.tasks - static_cast<int>(left)) + " of " +
             std::to_string(sweep.tasks) + " shards are finished");
    }
    if (unfinished.empty()) return;
    if (!queued && submissions == kMaxSubmissions)
      throw InputError(
          Problem{(sweep.folder / (stem_of(unfinished.front(), sweep.tasks) + ".log")).string(),
                  "shards " + array_text(unfinished) + " did not finish in " +
                      std::to_string(kMaxSubmissions) + " tries",
                  "read the log; then run again with --resume"});
    if (!queued) {
      job = submit(sweep, unfinished);
      ++submissions;
      report("shards " + array_text(unfinished) + " were lost: submitted again as job " + job);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace tessera
