// What an hour of a job's GPUs costs where they are of several kinds.
#include <map>
#include <string>
#include <vector>

#include "app/cli/commands/run/run_options.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

/// The GPU of every rank.
std::vector<const GpuSpec*> gpus_of_job(const Scenario& scenario) {
  std::vector<const GpuSpec*> gpus(static_cast<std::size_t>(scenario.step.layout.world_size()),
                                   &scenario.cluster.node.gpu);
  for (const GpuPerturbation& other : scenario.perturbation.gpus) {
    const GpuSpec* gpu = other.gpu.id.empty() ? &scenario.cluster.node.gpu : &other.gpu;
    for (const int rank : ranks_of(other, scenario.step.layout))
      gpus[static_cast<std::size_t>(rank)] = gpu;
  }
  return gpus;
}

}  // namespace

double mean_gpu_price(const RunOptions& options, const Scenario& scenario) {
  std::map<std::string, double> known;
  double sum = 0;
  const std::vector<const GpuSpec*> gpus = gpus_of_job(scenario);
  for (const GpuSpec* gpu : gpus) {
    const auto [entry, is_new] = known.try_emplace(gpu->id);
    if (is_new) {
      const auto price = price_of(options, gpu->id);
      entry->second = price ? price->dollars_per_hour : gpu->price;
    }
    if (entry->second <= 0) return 0;
    sum += entry->second;
  }
  if (options.spot && known.size() > 1)
    throw InputError({"--spot",
                      "is for jobs on GPUs of one kind: each has interruptions of its own",
                      "leave it out"});
  return sum / static_cast<double>(gpus.size());
}

}  // namespace tessera
