#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "app/cli/commands/run/run_options.h"

namespace tessera {

/// Which run a line of a store is of: equal for equal plans, seeds and goals, and for nothing else.
std::string key_of_run(const RunPlan& plan, const RunOptions& options, double tokens_per_s);

/// Results of runs in a file, a line each, written as soon as a run has ended: what a killed
/// process has finished, the next one with the same file need not do again. Lines that are damaged
/// or cut off count for nothing.
class RunStore {
 public:
  struct Result {
    RunStatistics runs;
    std::optional<TokenGoal> goal;
  };

  /// Without a file (empty) nothing is kept. Throws InputError for a file that is no store.
  explicit RunStore(std::filesystem::path file);

  std::optional<Result> find(const std::string& key) const;
  /// Throws InputError where the file cannot be written.
  void add(const std::string& key, const Result& result);

 private:
  std::filesystem::path file_;
  std::map<std::string, std::string> lines_;  ///< by key
};

}  // namespace tessera
