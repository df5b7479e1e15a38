#include <set>

#include <google/protobuf/descriptor.h>

#include "configs/schema/scenario.pb.h"
#include "sim/config/mirror.h"
#include "tests/sim/config/config_fixture.h"

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
      "context_attention", "embedding_as_layer", "first_stage_layers", "head_as_layer",
      "last_stage_layers", "layers_per_stage",   "placement"};
  EXPECT_EQ(unmirrored<ParallelLayout>(*schema::Parallelism::descriptor()), of_others);
  // The number of micro-batches follows from the other three sizes.
  const std::set<std::string> derived = {"micro_batches"};
  EXPECT_EQ(unmirrored<StepOptions>(*schema::Training::descriptor()), derived);
}

}  // namespace
}  // namespace tessera
