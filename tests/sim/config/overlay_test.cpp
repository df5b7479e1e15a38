#include <gmock/gmock.h>

#include "sim/config/fields/explain.h"
#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr const char* kScenario = "configs/scenarios/gpt2-large_4xh100_dp4.yaml";

GpuOverlay example() {
  return {.gpu = "H100-SXM5-80GB",
          .mode = OverlayMode::calibrated_steps,
          .gemm_slowdown = -0.1234567890123456,
          .batched_slowdown = 1.0 / 3,
          .sustained_flops = 51.23456789e12,
          .floors = {3e-6, 4.1e-6, 5e-6, 6e-6, 1.0 / 3 * 1e-5},
          .source = "a \"quoted\" name.csv",
          .source_fnv1a = "0x00000000000000ff",
          .rows = 12,
          .weights = "0x0123456789abcdef",
          .tool_version = "1.2.3",
          .tensor = {.compute = 0.1, .memory = -0.2, .power = 1.0 / 7, .attention = 0, .rows = 5},
          .bandwidth_slowdown = {0.1, 0, 0.3}};
}

void expect_equal(const GpuOverlay& a, const GpuOverlay& b) {
  EXPECT_EQ(a.gpu, b.gpu);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.gemm_slowdown, b.gemm_slowdown);
  EXPECT_EQ(a.batched_slowdown, b.batched_slowdown);
  EXPECT_EQ(a.bandwidth_slowdown, b.bandwidth_slowdown);
  EXPECT_EQ(a.sustained_flops, b.sustained_flops);
  EXPECT_EQ(a.floors.linear, b.floors.linear);
  EXPECT_EQ(a.floors.batched, b.floors.batched);
  EXPECT_EQ(a.floors.elementwise, b.floors.elementwise);
  EXPECT_EQ(a.floors.softmax, b.floors.softmax);
  EXPECT_EQ(a.floors.layer_norm, b.floors.layer_norm);
  EXPECT_EQ(a.tensor.compute, b.tensor.compute);
  EXPECT_EQ(a.tensor.memory, b.tensor.memory);
  EXPECT_EQ(a.tensor.power, b.tensor.power);
  EXPECT_EQ(a.tensor.attention, b.tensor.attention);
  EXPECT_EQ(a.tensor.rows, b.tensor.rows);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.source_fnv1a, b.source_fnv1a);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.tool_version, b.tool_version);
}

class Overlay : public ConfigTest {
 protected:
  std::string planted(const std::string& name, const std::string& text) const {
    return file(name, text).string();
  }
  std::string planted() const { return planted("h100.yaml", overlay_yaml(example())); }

  std::string refusal(const std::string& setting) const {
    return message_of([&] { load(kScenario, {setting}); });
  }
};

TEST_F(Overlay, AFileReadsBackBitByBit) {
  expect_equal(load_overlay(planted(), catalog_), example());
}

TEST_F(Overlay, AScenarioNamesFilesRelativeToItself) {
  planted();
  std::string text = read(kScenario) + "overlays: [h100.yaml]\n";
  const Scenario scenario = load(file("scenario.yaml", text));
  ASSERT_EQ(scenario.overlays.size(), 1u);
  expect_equal(scenario.overlays[0], example());
}

TEST_F(Overlay, ASettingNamesFilesToo) {
  const Scenario scenario = load(kScenario, {"overlays=[" + planted() + "]"});
  ASSERT_EQ(scenario.overlays.size(), 1u);
  expect_equal(scenario.overlays[0], example());
}

TEST_F(Overlay, AResolvedScenarioHoldsItWhole) {
  const Scenario scenario = load(kScenario, {"overlays=[" + planted() + "]"});
  const std::string resolved = resolved_yaml(scenario);
  const Scenario again = load(file("resolved.yaml", resolved));
  ASSERT_EQ(again.overlays.size(), 1u);
  expect_equal(again.overlays[0], example());
  EXPECT_EQ(resolved_yaml(again), resolved);
}

TEST_F(Overlay, ErrorsInTheFileHaveItsLineAndColumn) {
  std::string text = overlay_yaml(example());
  const std::string was = "gemm_slowdown: -0.1234567890123456\n";
  text.replace(text.find(was), was.size(), "gemm_slowdown: fast\n");
  const std::string path = planted("bad.yaml", text);
  EXPECT_EQ(refusal("overlays=[" + path + "]"),
            path +
                ":5:16: overlays[0].gemm_slowdown = fast is not a finite number; write a "
                "number, -10 to 10");
  const std::string missing = planted("missing.yaml", "gpu: H100-SXM5-80GB\n");
  EXPECT_THAT(refusal("overlays=[" + missing + "]"),
              HasSubstr(missing + ":1:1: overlays[0].gemm_slowdown is missing"));
}

TEST_F(Overlay, OneThatCouldHaveNoEffectIsAnError) {
  GpuOverlay other = example();
  other.gpu = "T4";
  const std::string path = planted("t4.yaml", overlay_yaml(other));
  EXPECT_EQ(refusal("overlays=[" + path + "]"),
            path +
                ":2:1: overlays[0].gpu = T4, but the GPU of cluster hgx-h100-4 is "
                "H100-SXM5-80GB; remove the overlay, or calibrate H100-SXM5-80GB");
  EXPECT_THAT(refusal("overlays=[" + planted() + ", " + planted() + "]"),
              HasSubstr("overlays[1] is a second overlay of H100-SXM5-80GB; keep one"));
  EXPECT_THAT(message_of([&] {
                load(kScenario, {"overlays=[" + planted() + "]", "predictor.form=roofline"});
              }),
              HasSubstr("overlays correct the predictor form tessera alone"));
}

TEST_F(Overlay, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(refusal("overlays=[nowhere.yaml]"),
              HasSubstr("overlays[0] = nowhere.yaml: there is no file nowhere.yaml"));
  EXPECT_THAT(
      refusal("overlays=[h100]"),
      HasSubstr("overlays[0] = h100 is not in configs/overlays; name a file: its name has a "
                "slash or ends in .yaml"));
}

TEST_F(Overlay, ItsFieldsAreExplained) {
  EXPECT_THAT(explain("overlays"), HasSubstr("gemm_slowdown (required)"));
  EXPECT_THAT(explain("overlays.sustained_flops"), HasSubstr("0 = no limit"));
}

}  // namespace
}  // namespace tessera
