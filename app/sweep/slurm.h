#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// A sweep as a job array: task i runs shard i of `tasks`.
struct SlurmSweep {
  std::filesystem::path program;  ///< tessera, as the compute nodes see it
  std::filesystem::path sweep;    ///< absolute
  std::filesystem::path folder;   ///< absolute and shared by the nodes
  int tasks = 1;
  std::vector<std::string> run_options;    ///< of every shard: "--limit", "100"
  std::vector<std::string> slurm_options;  ///< of sbatch: "--partition=gpu"
};

/// The job script. Each task goes on where an earlier try of it ended, and leaves
/// shard-I-of-N.done behind once it has all its points.
std::string slurm_script(const SlurmSweep& sweep);

/// Shards without their mark, ascending.
std::vector<int> unfinished_shards(const SlurmSweep& sweep);

/// "1-3,7" of 1, 2, 3, 7.
std::string array_text(const std::vector<int>& shards);

/// Writes the script into the folder, submits it and returns the number of the job. Throws
/// InputError with what sbatch says.
std::string submit(const SlurmSweep& sweep, const std::vector<int>& shards);

/// Waits until every shard is finished; tasks that left the queue unfinished are submitted again,
/// a few times. `report` gets a line for whatever changes. Throws InputError for shards that never
/// finish, naming their logs.
void watch(const SlurmSweep& sweep, std::string job,
           const std::function<void(const std::string&)>& report);

}  // namespace tessera
