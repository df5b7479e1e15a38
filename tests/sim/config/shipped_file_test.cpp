#include "sim/config/shipped_file.h"

#include "sim/config/scenario_source.h"
#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

constexpr const char* kShipped = "gpt2-large_4xh100_dp4";

class ShippedFile : public ConfigTest {
 protected:
  std::string refusal(const std::string& name) const {
    return message_of([&] { shipped_or_own_file(CatalogKind::scenarios, name, catalog_); });
  }
};

TEST_F(ShippedFile, AnIdIsTheFileInTheCatalog) {
  EXPECT_EQ(shipped_or_own_file(CatalogKind::scenarios, kShipped, catalog_),
            "configs/scenarios/gpt2-large_4xh100_dp4.yaml");
  EXPECT_EQ(load(kShipped).name, kShipped);
  EXPECT_EQ(open_scenario(kShipped, catalog_).with({}).name, kShipped);
}

TEST_F(ShippedFile, WhatHasASlashOrAnEndingIsAFile) {
  EXPECT_EQ(shipped_or_own_file(CatalogKind::scenarios, "mine.yaml", catalog_), "mine.yaml");
  EXPECT_EQ(shipped_or_own_file(CatalogKind::scenarios, "configs/scenarios/../models", catalog_),
            "configs/scenarios/../models");
}

TEST_F(ShippedFile, AFileWithoutAnEndingIsOneToo) {
  const auto plain = file("plain", "");
  std::filesystem::current_path(plain.parent_path());
  EXPECT_EQ(shipped_or_own_file(CatalogKind::scenarios, "plain", catalog_), "plain");
}

TEST_F(ShippedFile, ANameThatIsBothIsRefused) {
  const Catalog catalog(std::filesystem::absolute("configs"));
  std::filesystem::current_path(file(kShipped, "").parent_path());
  EXPECT_EQ(message_of([&] { shipped_or_own_file(CatalogKind::scenarios, kShipped, catalog); }),
            "gpt2-large_4xh100_dp4: is a shipped scenario and a file here; write "
            "./gpt2-large_4xh100_dp4 for the file, or change the folder");
}

TEST_F(ShippedFile, AMisspelledIdGetsTheNearest) {
  EXPECT_EQ(refusal("gpt2-large_4xh100_pd4"),
            "gpt2-large_4xh100_pd4: no such file, and no scenario that is shipped; did you mean "
            "gpt2-large_4xh100_dp4? (tessera list scenarios)");
}

TEST_F(ShippedFile, APathOfTheCheckoutElsewhereGetsTheId) {
  EXPECT_EQ(
      refusal("elsewhere/scenarios/gpt2-large_4xh100_dp4.yaml"),
      "elsewhere/scenarios/gpt2-large_4xh100_dp4.yaml: no such file; this scenario is shipped: "
      "name it gpt2-large_4xh100_dp4");
}

TEST_F(ShippedFile, EveryKindHasItsFolderAndItsWord) {
  EXPECT_EQ(shipped_or_own_file(CatalogKind::sweeps, "layouts-8-gpus", catalog_),
            "configs/sweeps/layouts-8-gpus.yaml");
  EXPECT_EQ(shipped_or_own_file(CatalogKind::neighbours, "ten-jobs-clos", catalog_),
            "configs/neighbours/ten-jobs-clos.yaml");
  EXPECT_EQ(shipped_or_own_file(CatalogKind::reliability, "rsc-1", catalog_),
            "configs/reliability/rsc-1.yaml");
  EXPECT_EQ(
      message_of([&] { shipped_or_own_file(CatalogKind::sweeps, "layouts-8-gpu", catalog_); }),
      "layouts-8-gpu: no such file, and no sweep that is shipped; did you mean "
      "layouts-8-gpus? (tessera list sweeps)");
}

TEST_F(ShippedFile, ASweepIsNoScenario) {
  EXPECT_NE(refusal("layouts-8-gpus").find("no scenario that is shipped"), std::string::npos);
}

}  // namespace
}  // namespace tessera
