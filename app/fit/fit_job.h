#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/import/job/imported_job.h"
#include "sim/config/catalog.h"
#include "sim/config/scenario_source.h"

namespace tessera {

/// What a question about memory is about, as a scenario to make variants of.
class FitJob {
 public:
  /// `what`: id or file of a model (Hugging Face's config.json too) or of a scenario, a launch
  /// script of Megatron-LM, a configuration of DeepSpeed or accelerate. `options.cluster` may be
  /// empty where `what` is a scenario, and has to be given else. Where nothing says how many GPUs
  /// the job has, it takes all of the cluster, `overrides` included. Throws InputError with
  /// everything that keeps it from being a scenario.
  FitJob(const std::string& what, const JobOptions& options, std::vector<std::string> overrides,
         const Catalog& catalog);

  const Scenario& scenario() const { return scenario_; }
  /// The job with further `settings`, as --set takes them.
  Scenario with(std::span<const std::string> settings) const;

  const std::string& kind() const { return read_.kind; }  ///< "scenario", "Megatron-LM job", ...
  const std::vector<std::string>& assumed() const { return read_.assumed; }
  const std::vector<std::string>& ignored() const { return read_.ignored; }

 private:
  struct Read {
    ScenarioSource source;
    std::string kind;
    std::vector<std::string> assumed, ignored;
  };
  static Read read(const std::string& what, const JobOptions& options,
                   std::span<const std::string> overrides, const Catalog& catalog);
  static Read scenario_file(const std::string& file, const Catalog& catalog);
  static Read of_import(const ImportedJob& job, const std::string& name, const std::string& kind,
                        const Catalog& catalog);

  std::vector<std::string> overrides_;
  Read read_;
  Scenario scenario_;
};

}  // namespace tessera
