#include "sim/config/scenario_file.h"

#include "sim/config/scenario_source.h"
#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

constexpr const char* kShipped = "gpt2-large_4xh100_dp4";

class ScenarioFile : public ConfigTest {
 protected:
  std::string refusal(const std::string& name) const {
    return message_of([&] { scenario_file(name, catalog_); });
  }
};

TEST_F(ScenarioFile, AnIdIsTheFileInTheCatalog) {
  EXPECT_EQ(scenario_file(kShipped, catalog_), "configs/scenarios/gpt2-large_4xh100_dp4.yaml");
  EXPECT_EQ(load(kShipped).name, kShipped);
  EXPECT_EQ(open_scenario(kShipped, catalog_).with({}).name, kShipped);
}

TEST_F(ScenarioFile, WhatHasASlashOrAnEndingIsAFile) {
  EXPECT_EQ(scenario_file("mine.yaml", catalog_), "mine.yaml");
  EXPECT_EQ(scenario_file("configs/scenarios/../models", catalog_), "configs/scenarios/../models");
}

TEST_F(ScenarioFile, AFileWithoutAnEndingIsOneToo) {
  const auto plain = file("plain", "");
  std::filesystem::current_path(plain.parent_path());
  EXPECT_EQ(scenario_file("plain", catalog_), "plain");
}

TEST_F(ScenarioFile, ANameThatIsBothIsRefused) {
  const Catalog catalog(std::filesystem::absolute("configs"));
  std::filesystem::current_path(file(kShipped, "").parent_path());
  EXPECT_EQ(message_of([&] { scenario_file(kShipped, catalog); }),
            "gpt2-large_4xh100_dp4: is a shipped scenario and a file here; write "
            "./gpt2-large_4xh100_dp4 for the file, or change the folder");
}

TEST_F(ScenarioFile, AMisspelledIdGetsTheNearest) {
  EXPECT_EQ(refusal("gpt2-large_4xh100_pd4"),
            "gpt2-large_4xh100_pd4: no such file, and no scenario that is shipped; did you mean "
            "gpt2-large_4xh100_dp4? (tessera list scenarios)");
}

TEST_F(ScenarioFile, APathOfTheCheckoutElsewhereGetsTheId) {
  EXPECT_EQ(
      refusal("elsewhere/scenarios/gpt2-large_4xh100_dp4.yaml"),
      "elsewhere/scenarios/gpt2-large_4xh100_dp4.yaml: no such file; this scenario is shipped: "
      "name it gpt2-large_4xh100_dp4");
}

}  // namespace
}  // namespace tessera
