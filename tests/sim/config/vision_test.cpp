// Image models in scenarios: what is required, derived and written back.
#include <gmock/gmock.h>

#include "tests/sim/config/config_fixture.h"
#include "workloads/model_spec.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kScenario = "configs/scenarios/resnet-50_8xv100_dp8.yaml";

using VisionScenario = ConfigTest;

TEST_F(VisionScenario, NeedsNoSequenceAndNoDimensions) {
  const Scenario scenario = load(kScenario);
  EXPECT_EQ(scenario.model.family, ModelFamily::vision);
  EXPECT_EQ(scenario.model.architecture, VisionArchitecture::resnet50);
  EXPECT_EQ(scenario.model.image_size, 224);
  EXPECT_EQ(scenario.model.classes, 1000);
  EXPECT_EQ(scenario.step.sequence_length, 0);
  EXPECT_EQ(scenario.step.micro_batch, 64);  // 512 images / 8 replicas
}

TEST_F(VisionScenario, SizesMayDifferFromTheArchitectures) {
  const Scenario scenario = load(kScenario, {"model.image_size=160", "model.classes=10"});
  EXPECT_EQ(scenario.model.image_size, 160);
  EXPECT_EQ(scenario.model.classes, 10);
  EXPECT_EQ(load(kScenario, {"model=inception-v4"}).model.image_size, 299);
}

TEST_F(VisionScenario, ArchitecturesGoByTheNamesOfTheirSources) {
  const auto architecture = [&](const std::string& name) {
    return load(kScenario, {"model.architecture=" + name}).model.architecture;
  };
  EXPECT_EQ(architecture("resnext50_32x4d"), VisionArchitecture::resnext50_32x4d);    // torchvision
  EXPECT_EQ(architecture("resnext101-32x4d"), VisionArchitecture::resnext101_32x4d);  // NVIDIA
  EXPECT_EQ(architecture("se-resnext101-32x4d"), VisionArchitecture::se_resnext101_32x4d);
  EXPECT_EQ(architecture("seresnext101_32x4d"), VisionArchitecture::se_resnext101_32x4d);  // timm
}

TEST_F(VisionScenario, EveryShippedImageModelRuns) {
  for (const std::string& id : catalog_.ids(CatalogKind::models)) {
    if (load_model(id, catalog_).family != ModelFamily::vision) continue;
    EXPECT_EQ(message_of([&] { load(kScenario, {"model=" + id}); }), "") << id;
  }
}

TEST_F(VisionScenario, IsWrittenWithoutWhatOnlyTransformersHave) {
  const std::string text = resolved_yaml(load(kScenario));
  EXPECT_THAT(text, HasSubstr("architecture: resnet50"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_THAT(text, Not(HasSubstr("sequence_length")));
  const std::string other = resolved_yaml(load("configs/scenarios/gpt2-large_4xh100_dp4.yaml"));
  EXPECT_THAT(other, Not(HasSubstr("image_size")));
  EXPECT_THAT(other, HasSubstr("sequence_length: 1024"));
}

}  // namespace
}  // namespace tessera
