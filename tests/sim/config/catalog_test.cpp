#include <set>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "configs/schema/scenario.pb.h"
#include "sim/config/fields/message_fields.h"
#include "sim/config/fields/schema_rules.h"
#include "tests/sim/config/config_fixture.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using CatalogTest = ConfigTest;

TEST_F(CatalogTest, EveryGpuLoadsUnderTheNameOfItsFile) {
  const auto ids = catalog_.ids(CatalogKind::gpus);
  EXPECT_FALSE(ids.empty());
  for (const std::string& id : ids) EXPECT_EQ(load_gpu(id, catalog_).id, id);
}

TEST_F(CatalogTest, EveryNodeLoadsUnderTheNameOfItsFile) {
  for (const std::string& id : catalog_.ids(CatalogKind::nodes)) {
    EXPECT_EQ(load_node(id, catalog_).id, id);
  }
}

TEST_F(CatalogTest, EveryClusterLoadsUnderTheNameOfItsFile) {
  for (const std::string& id : catalog_.ids(CatalogKind::clusters)) {
    EXPECT_EQ(load_cluster(id, catalog_).id, id);
  }
}

TEST_F(CatalogTest, EveryModelLoadsUnderTheNameOfItsFile) {
  for (const std::string& id : catalog_.ids(CatalogKind::models)) {
    EXPECT_EQ(load_model(id, catalog_).name, id);
  }
}

/// Counts of the published weights (Hugging Face safetensors, or the paper's rounded number).
TEST_F(CatalogTest, ModelsHaveTheirPublishedParameters) {
  const auto parameters = [this](const std::string& id) {
    return parameter_count(load_model(id, catalog_));
  };
  const std::vector<std::pair<std::string, std::int64_t>> exact = {
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-xl", 1'557'611'200},
      {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},
      {"llama-3-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800},
      {"llama-3.2-1b", 1'235'814'400},
      {"llama-3.2-3b", 3'212'749'824},
      {"mistral-7b", 7'241'732'096},
      {"mixtral-8x22b", 140'620'634'112},
      {"opt-6.7b", 6'658'473'984},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen2.5-32b", 32'763'876'352},
      {"qwen2.5-72b", 72'706'203'648},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-32b", 32'762'123'264},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"bloom-176b", 176'247'271'424},
      {"mpt-7b", 6'649'286'656},
  };
  for (const auto& [id, count] : exact) EXPECT_EQ(parameters(id), count) << id;
  const std::vector<std::pair<std::string, double>> rounded = {
      {"gpt3-6.7b", 6.7e9},       {"gpt3-13b", 12.9e9},    {"opt-13b", 12.85e9},  {"opt-30b", 30e9},
      {"megatron-530b", 529.6e9}, {"megatron-1t", 1008e9}, {"megatron-22b", 22e9}};
  for (const auto& [id, count] : rounded)
    EXPECT_NEAR(static_cast<double>(parameters(id)) / count, 1, 0.01) << id;
}

TEST_F(CatalogTest, AnEntryMayBeNamedByItsFile) {
  EXPECT_EQ(load_gpu("configs/hw/gpus/V100-PCIe-32GB.yaml", catalog_).id, "V100-PCIe-32GB");
}

TEST_F(CatalogTest, AnUnknownIdGetsTheNearestOne) {
  EXPECT_EQ(message_of([&] { load_gpu("h100-sxm5-80gb", catalog_); }),
            "gpu = h100-sxm5-80gb is not in configs/hw/gpus; did you mean H100-SXM5-80GB?");
}

TEST_F(CatalogTest, AMissingFolderIsAnEmptyList) {
  EXPECT_TRUE(Catalog("nowhere").ids(CatalogKind::gpus).empty());
}

TEST_F(CatalogTest, ProblemsOfAnEntryOnItsOwnHaveItsOwnPaths) {
  const auto path = file("node.yaml", "extends: HGX-H100-4\npairs: []\n");
  EXPECT_EQ(message_of([&] { load_node(path, catalog_); }),
            path.string() +
                ":2:1: pairs: interconnect direct without pairs; "
                "list the NVLink bundles, or use interconnect none");
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string text_of(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  if (field.is_repeated()) return std::to_string(reflection.FieldSize(message, &field));
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

/// Whether the schema itself says what stands where nothing is given: not where that is required,
/// derived, or a section with fields of its own.
bool has_plain_default(const FieldDescriptor& field) {
  const schema::FieldRules& rules = rules_of(field);
  return !rules.required() && !rules.has_derived_default() && field.message_type() == nullptr;
}

/// Fields that are something else in a value of its own making than in one that is read from a file
/// that says nothing.
template <class Section, class Value>
std::set<std::string> other_defaults() {
  const Section silent;
  Value read;
  mirror(read, MessageReader(silent));
  Section of_file, of_program;
  mirror(std::as_const(read), MessageWriter(of_file));
  const Value own;
  mirror(own, MessageWriter(of_program));
  std::set<std::string> names;
  for (int i = 0; i < Section::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *Section::descriptor()->field(i);
    if (has_plain_default(field) && text_of(of_file, field) != text_of(of_program, field))
      names.insert(field.name());
  }
  return names;
}

TEST(Mirror, WhatAFileMayLeaveOutIsWhatAValueHasByItself) {
  const std::set<std::string> none;
  EXPECT_EQ((other_defaults<schema::Gpu, GpuSpec>()), none);
  EXPECT_EQ((other_defaults<schema::Node, NodeSpec>()), none);
  EXPECT_EQ((other_defaults<schema::Fabric, FabricSpec>()), none);
  EXPECT_EQ((other_defaults<schema::Cluster, ClusterSpec>()), none);
  EXPECT_EQ((other_defaults<schema::Model, ModelSpec>()), none);
  EXPECT_EQ((other_defaults<schema::Overlay, GpuOverlay>()), none);
  EXPECT_EQ((other_defaults<schema::MixedPrecision, MixedPrecision>()), none);
  EXPECT_EQ((other_defaults<schema::DataParallel, DataParallel>()), none);
  EXPECT_EQ((other_defaults<schema::Framework, FrameworkProfile>()), none);
  EXPECT_EQ((other_defaults<schema::Collectives, CollectiveSettings>()), none);
  EXPECT_EQ((other_defaults<schema::GpuPerturbation, GpuPerturbation>()), none);
  EXPECT_EQ((other_defaults<schema::Perturbation, Perturbation>()), none);
  EXPECT_EQ((other_defaults<schema::Simulation, SimulationSettings>()), none);
  EXPECT_EQ((other_defaults<schema::Reliability, ReliabilitySettings>()), none);
  EXPECT_EQ((other_defaults<schema::Host, HostTable>()), none);
  EXPECT_EQ((other_defaults<schema::Training, StepOptions>()), none);
  EXPECT_EQ((other_defaults<schema::Parallelism, ParallelLayout>()), none);
  EXPECT_EQ((other_defaults<schema::Memory, MemorySettings>()), none);
}

}  // namespace
}  // namespace tessera
