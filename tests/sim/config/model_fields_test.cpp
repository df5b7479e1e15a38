// Every dimension of a model changes what its family runs, or is refused by name: none is ignored.
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "configs/schema/mirror.h"
#include "sim/scenario/rules/check_scenario.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

/// Two layers of a model on one GPU.
Scenario scenario_of(ModelSpec model, const FrameworkProfile& framework) {
  Scenario scenario;
  scenario.model = std::move(model);
  scenario.cluster.id = "one";
  scenario.cluster.node.gpu_count = 1;
  scenario.cluster.node.gpu.id = "gpu";
  scenario.cluster.node.gpu.fp32 = 10_TFLOPS;
  scenario.step =
      test::in(Precision::fp32, test::single_gpu(framework, StepMode::training, 2, 512));
  scenario.step.global_batch = 2;
  if (scenario.model.family == ModelFamily::vision) scenario.step.sequence_length = 0;
  return scenario;
}

/// What a step of it runs and holds, as numbers.
std::vector<double> signature(const Scenario& scenario) {
  std::vector<double> numbers{
      static_cast<double>(build_program(scenario.model, scenario.step).parameters)};
  for (const Block& block : build_model_graph(scenario.model, scenario.step).blocks) {
    for (const auto* ops : {&block.forward, &block.backward})
      for (const GraphOp& op : *ops)
        for (const double number :
             {op.kernel.flops.value(), static_cast<double>(op.kernel.bytes_read.value()),
              static_cast<double>(op.kernel.bytes_written.value())})
          numbers.push_back(number);
    numbers.push_back(-1);
  }
  return numbers;
}

/// Whether a change of `field` is refused by its name, or changes what runs.
bool has_effect(const Scenario& changed, const std::string& field,
                const std::vector<double>& before) {
  const std::vector<Problem> problems = check_scenario(changed);
  const auto names_it = [&](const Problem& problem) {
    const auto is_it = [&](const std::string& path) { return path == "model." + field; };
    return is_it(problem.where) || std::ranges::any_of(problem.other, is_it);
  };
  if (!problems.empty()) return std::ranges::any_of(problems, names_it);
  return signature(changed) != before;
}

/// Other values of a member.
template <class Member>
std::vector<Member> others(const Member& value) {
  if constexpr (std::is_same_v<Member, bool>) return {!value};
  if constexpr (std::is_same_v<Member, double>) return {value > 0 ? 0 : 0.1};
  if constexpr (std::is_same_v<Member, std::int64_t>) return {value + 1, 2 * value, value + 1000};
  if constexpr (std::is_same_v<Member, Activation>)
    return {Activation::relu, Activation::gelu, Activation::silu, Activation::swiglu};
  if constexpr (std::is_same_v<Member, NormKind>) return {NormKind::layer_norm};
  if constexpr (std::is_same_v<Member, NormPlacement>) return {NormPlacement::both};
  if constexpr (std::is_same_v<Member, BlockOrder>) return {BlockOrder::parallel};
  if constexpr (std::is_same_v<Member, VisionArchitecture>) return {VisionArchitecture::vgg16};
  return {};
}

/// Fields of `model` that nobody reads and nobody refuses.
std::vector<std::string> ignored_fields(const ModelSpec& model, const FrameworkProfile& framework) {
  const Scenario sound = scenario_of(model, framework);
  EXPECT_TRUE(check_scenario(sound).empty()) << check_scenario(sound).front().what;
  const std::vector<double> before = signature(sound);
  std::vector<std::string> ignored;
  mirror(sound.model, [&](const std::string& field, const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    const std::vector<Member> values = others(member);
    if (values.empty()) return;  // names, the family, patterns of letters
    const bool any = std::ranges::any_of(values, [&](const Member& value) {
      Scenario changed = sound;
      mirror(changed.model, [&](const std::string& name, auto& of_changed) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(of_changed)>, Member>)
          if (name == field) of_changed = value;
      });
      return has_effect(changed, field, before);
    });
    if (!any) ignored.push_back(field);
  });
  return ignored;
}

using Fields = std::vector<std::string>;

ModelSpec small(ModelSpec model) {
  model.layers = 2;
  return model;
}

ModelSpec mixture() {
  ModelSpec model = small(test::llama2_7b());
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

TEST(ModelFields, OfGptAreReadOrRefused) {
  EXPECT_EQ(ignored_fields(small(test::gpt2_large()), test::megatron_local()), Fields{});
  EXPECT_EQ(ignored_fields(small(test::gpt2_large()), test::hf_eager()), Fields{});
}

/// Unfused attention multiplies all pairs and masks what lies outside of a window.
TEST(ModelFields, OfLlamaAreReadOrRefused) {
  for (const ModelSpec& model : {small(test::llama2_7b()), mixture()})
    EXPECT_EQ(ignored_fields(model, test::megatron_local()), Fields{"window"}) << model.experts;
}

TEST(ModelFields, OfOptBertAndSwitchTransformersAreReadOrRefused) {
  for (const ModelSpec& model :
       {small(test::opt_1_3b()), small(test::bert_large()), small(test::switch_xl4())})
    EXPECT_EQ(ignored_fields(model, test::hf_eager()), Fields{}) << model.name;
}

TEST(ModelFields, OfModelsWithAlibiAreReadOrRefused) {
  EXPECT_EQ(ignored_fields(small(test::bloom_176b()), test::hf_eager()), Fields{});
  EXPECT_EQ(ignored_fields(small(test::mpt_7b()), test::hf_eager()), Fields{});
}

TEST(ModelFields, OfImagesAreReadOrRefused) {
  const ModelSpec model{.name = "resnet-50",
                        .family = ModelFamily::vision,
                        .architecture = VisionArchitecture::resnet50,
                        .image_size = 224,
                        .classes = 1000};
  EXPECT_EQ(ignored_fields(model, test::hf_eager()), Fields{});
}

}  // namespace
}  // namespace tessera
