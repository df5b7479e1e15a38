#include <set>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "configs/schema/scenario.pb.h"
#include "sim/config/fields/mirror.h"
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

/// Fields of `type` that `mirror` does not visit, and the other way round.
template <class Value>
std::set<std::string> unmirrored(const google::protobuf::Descriptor& type) {
  std::set<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.insert(type.field(i)->name());
  Value value;
  mirror(value, [&](const std::string& name, const auto&) {
    if (names.erase(name) == 0) names.insert("no field " + name);
  });
  return names;
}

TEST(Mirror, VisitsEveryFieldOfTheSchema) {
  const std::set<std::string> none;
  EXPECT_EQ(unmirrored<FigureSource>(*schema::FigureSource::descriptor()), none);
  EXPECT_EQ(unmirrored<GpuSpec>(*schema::Gpu::descriptor()), none);
  EXPECT_EQ(unmirrored<GpuPairLink>(*schema::GpuPairLink::descriptor()), none);
  EXPECT_EQ(unmirrored<NodeSpec>(*schema::Node::descriptor()), none);
  EXPECT_EQ(unmirrored<ClusterSpec>(*schema::Cluster::descriptor()), none);
  EXPECT_EQ(unmirrored<ModelSpec>(*schema::Model::descriptor()), none);
  // StageSplit mirrors how layers are split; to_scenario() reads two more by itself.
  const std::set<std::string> of_others = {
      "context_attention", "embedding_as_layer", "first_stage_layers",        "head_as_layer",
      "last_stage_layers", "layers_per_stage",   "micro_batches_per_replica", "placement"};
  EXPECT_EQ(unmirrored<ParallelLayout>(*schema::Parallelism::descriptor()), of_others);
  // The number of micro-batches follows from the other three sizes.
  const std::set<std::string> derived = {"micro_batches"};
  EXPECT_EQ(unmirrored<StepOptions>(*schema::Training::descriptor()), derived);
}

}  // namespace
}  // namespace tessera
