#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/yaml_leaves.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kFsdp =
    "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n"
    "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";

ImportedJob import(const std::string& text) {
  JobOptions options;
  options.model = "llama-3-8b";
  return import_accelerate(text, "job.yaml", options);
}

TEST(AccelerateJob, VersionTwoOfFsdpCopiesWeightsOutOfTheirBuffer) {
  auto first = test::leaves_of(import(kFsdp + "  fsdp_version: 1\n").scenario);
  EXPECT_EQ(first["training.framework"], "fsdp");
  auto second = test::leaves_of(import(kFsdp + "  fsdp_version: 2\n").scenario);
  EXPECT_EQ(second["training.framework.extends"], "fsdp");
  EXPECT_EQ(second["training.framework.copies_gathered"], "true");
  EXPECT_THROW(import(kFsdp + "  fsdp_version: 3\n"), InputError);
}

// set_mixed_precision() of accelerate's FSDP plugin: param_dtype and reduce_dtype alike.
TEST(AccelerateJob, FsdpReducesInTheFormatThatItComputesIn) {
  const ImportedJob job = import(kFsdp);
  EXPECT_EQ(test::leaves_of(job.scenario)["training.mixed_precision.reduce"], "bf16");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("gradients are reduced in bf16")));
  const std::string exact =
      "distributed_type: FSDP\nmixed_precision: 'no'\nnum_processes: 8\nfsdp_config: {}\n";
  EXPECT_FALSE(test::leaves_of(import(exact).scenario).contains("training.mixed_precision.reduce"));
}

TEST(AccelerateJob, FsdpAccumulatesWholeGradientsUnderNoSync) {
  const ImportedJob job = import("gradient_accumulation_steps: 4\n" + kFsdp);
  auto fields = test::leaves_of(job.scenario);
  EXPECT_EQ(fields["training.data_parallel.reduce_each_micro_batch"], "false");
  EXPECT_EQ(fields["training.global_batch"], "32");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("under no_sync")));
}

}  // namespace
}  // namespace tessera
