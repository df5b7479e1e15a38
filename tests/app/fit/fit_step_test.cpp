#include "app/fit/fit_step.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "app/fit/fit_job.h"

namespace tessera {
namespace {

Scenario job_on(const std::string& cluster, std::vector<std::string> settings) {
  const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  settings.emplace_back("training.framework=megatron");
  settings.emplace_back("training.global_batch=1024");
  return FitJob("llama-3-70b", {.cluster = cluster}, settings, catalog).scenario();
}

TEST(FitSteps, ManyGpusFindAnEvenNetwork) {
  const std::vector<std::string> pipeline{"parallelism.tensor=8", "parallelism.pipeline=4",
                                          "parallelism.data=32"};
  const Scenario many = job_on("dgx-superpod-h100", pipeline);
  EXPECT_TRUE(spreads_messages(many));
  Scenario faulty = many;
  faulty.cluster.faults.push_back({.link = "spine0*", .bandwidth_share = 0.5});
  EXPECT_FALSE(spreads_messages(faulty));  // what is slow is one spine
  EXPECT_FALSE(spreads_messages(
      job_on("dgx-superpod-h100", {"parallelism.tensor=8", "parallelism.data=1"})));
}

}  // namespace
}  // namespace tessera
