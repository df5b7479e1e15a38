#include "hw/fabric/fabric_measurements.h"

#include "hw/validation.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

FabricMeasurement measured_on(int nodes, double reduce_gbps, double gather_gbps = 0) {
  return {.nodes = nodes,
          .all_reduce = BytesPerSecond(reduce_gbps * 1e9),
          .all_gather = BytesPerSecond(gather_gbps * 1e9)};
}

ClusterSpec cluster_of(int nodes, std::vector<FabricMeasurement> table) {
  ClusterSpec cluster = boxes::alone(boxes::a100_switch());
  cluster.node_count = nodes;
  cluster.measured_fabric = std::move(table);
  return cluster;
}

/// 320 GB/s on 2 nodes, halved with each doubling, and all-gathers of half of that.
ClusterSpec halving(int nodes) {
  return cluster_of(nodes,
                    {measured_on(2, 320, 160), measured_on(8, 80, 40), measured_on(32, 20, 10)});
}

auto problem_of(const std::string& where, const std::string& what) {
  return Contains(AllOf(Field(&Problem::where, where), Field(&Problem::what, HasSubstr(what))));
}

TEST(FabricMeasurements, AnEntryIsTakenAsItIs) {
  EXPECT_EQ(measurement_of(halving(8)).all_reduce, BytesPerSecond(80e9));
  EXPECT_EQ(measurement_of(halving(8)).all_gather, BytesPerSecond(40e9));
  EXPECT_FALSE(is_between_measurements(halving(8)));
}

TEST(FabricMeasurements, WhatHalvesWithEachDoublingIsALine) {
  for (const auto& [nodes, rate] :
       {std::pair(4, 160e9), std::pair(16, 40e9), std::pair(20, 32e9)}) {
    EXPECT_NEAR(measurement_of(halving(nodes)).all_reduce.value(), rate, 1) << nodes;
    EXPECT_NEAR(measurement_of(halving(nodes)).all_gather.value(), rate / 2, 1) << nodes;
    EXPECT_TRUE(is_between_measurements(halving(nodes)));
  }
}

TEST(FabricMeasurements, AnAllGatherThatNobodyMeasuredIsNotMade) {
  const ClusterSpec cluster = cluster_of(4, {measured_on(2, 320), measured_on(8, 80)});
  EXPECT_EQ(measurement_of(cluster).all_gather.value(), 0);
  EXPECT_THAT(problems_of(cluster), IsEmpty());
}

TEST(FabricMeasurements, OneNodeIsInsideEveryTable) {
  EXPECT_THAT(problems_of(halving(1)), IsEmpty());
  EXPECT_EQ(measurement_of(halving(1)).all_reduce.value(), 0);
  EXPECT_FALSE(is_between_measurements(halving(1)));
}

TEST(FabricMeasurements, WhatWasMeasuredAtThisSizeNeedsNoTable) {
  ClusterSpec cluster = cluster_of(4, {});
  cluster.measured_all_reduce = BytesPerSecond(50e9);
  EXPECT_EQ(measurement_of(cluster).all_reduce, BytesPerSecond(50e9));
  EXPECT_FALSE(is_between_measurements(cluster));
}

TEST(FabricMeasurements, SizesBeyondATableAreRefused) {
  EXPECT_THAT(problems_of(halving(64)),
              problem_of("measured_fabric", "64 nodes, measured on 2 to 32 nodes"));
  EXPECT_THAT(problems_of(cluster_of(2, {measured_on(4, 160)})),
              problem_of("measured_fabric", "2 nodes, measured on 4 to 4 nodes"));
}

TEST(FabricMeasurements, TablesAscend) {
  EXPECT_THAT(problems_of(cluster_of(4, {measured_on(8, 80), measured_on(2, 320)})),
              problem_of("measured_fabric[1].nodes", "2 nodes behind 8 nodes"));
  EXPECT_THAT(problems_of(cluster_of(8, {measured_on(8, 80), measured_on(8, 70)})),
              problem_of("measured_fabric[1].nodes", "8 nodes behind 8 nodes"));
}

TEST(FabricMeasurements, AllGathersAreMeasuredThroughoutOrNowhere) {
  EXPECT_THAT(problems_of(cluster_of(4, {measured_on(2, 320, 160), measured_on(8, 80)})),
              problem_of("measured_fabric[1].all_gather", "others none"));
}

TEST(FabricMeasurements, NothingIsMeasuredTwiceNorAnAllGatherAlone) {
  ClusterSpec twice = halving(4);
  twice.measured_all_reduce = BytesPerSecond(50e9);
  EXPECT_THAT(problems_of(twice), problem_of("measured_fabric", "beside measured_all_reduce"));
  ClusterSpec alone = cluster_of(4, {});
  alone.measured_all_gather = BytesPerSecond(50e9);
  EXPECT_THAT(problems_of(alone), problem_of("measured_all_gather", "without measured_all_reduce"));
}

}  // namespace
}  // namespace tessera
