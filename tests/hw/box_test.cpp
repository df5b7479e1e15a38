#include "hw/box.h"

#include <gtest/gtest.h>

#include "hw/topology/topology.h"
#include "hw/units/input_error.h"
#include "hw/validation.h"
#include "tests/hw/boxes.h"

namespace tessera {
namespace {

GpuSpec board_gpu() {
  GpuSpec gpu = boxes::gpu("H100-SXM5-80GB", Architecture::hopper, "9.0", 18);
  gpu.nvlink_generation = 4;
  gpu.form_factor = FormFactor::sxm;
  return gpu;
}

TEST(BoxOf, FourBoardsShareTheirLinksBetweenThreePeers) {
  const ClusterSpec box = box_of(board_gpu(), 4);
  ASSERT_EQ(box.node.interconnect, GpuInterconnect::direct);
  ASSERT_EQ(box.node.pairs.size(), 6u);  // 4 * 3 / 2
  EXPECT_EQ(box.node.pairs[0].links, 6);
  // 6 links of 25 GB/s, of which NCCL uses 20.6
  const Topology topology(box);
  const Route route = topology.route(0, 3);
  ASSERT_EQ(route.links.size(), 1u);
  EXPECT_NEAR(topology.link(route.links[0]).bandwidth.value(), 6 * 25e9 * 0.824, 1);
}

TEST(BoxOf, EightBoardsMeetAtASwitch) {
  EXPECT_EQ(box_of(board_gpu(), 8).node.interconnect, GpuInterconnect::nvswitch);
}

TEST(BoxOf, CardsMeetOnThePcieTree) {
  GpuSpec card = board_gpu();
  card.form_factor = FormFactor::card;
  const ClusterSpec box = box_of(card, 2);
  EXPECT_EQ(box.node.interconnect, GpuInterconnect::none);
  EXPECT_EQ(Topology(box).route(0, 1).links.size(), 2u);
}

TEST(BoxOf, CardsWithoutPeerToPeerCopyThroughTheHost) {
  GpuSpec card = boxes::gpu("RTX-4090", Architecture::ada, "8.9", 0);
  EXPECT_EQ(box_of(card, 2).node.staged_bandwidth, 0_GBps);
  card.peer_to_peer = false;
  EXPECT_EQ(box_of(card, 2).node.staged_bandwidth, 3_GBps);
  EXPECT_EQ(box_of(card, 1).node.staged_bandwidth, 0_GBps);
}

TEST(BoxOf, ModulesOfAnOpenBoardAreAllJoined) {
  GpuSpec module = board_gpu();
  module.form_factor = FormFactor::oam;
  const NodeSpec node = box_of(module, 8).node;
  EXPECT_EQ(node.interconnect, GpuInterconnect::direct);
  EXPECT_EQ(node.pairs.size(), 28u);  // 8 x 7 / 2
}

TEST(BoxOf, AGpuOfUnknownFormIsRefusedWhereItHasLinks) {
  GpuSpec gpu = board_gpu();
  gpu.form_factor = FormFactor::not_stated;
  EXPECT_THROW(box_of(gpu, 2), InputError);
  EXPECT_EQ(box_of(gpu, 1).node.gpu_count, 1);
  gpu.nvlink_links = 0;
  EXPECT_EQ(box_of(gpu, 2).node.interconnect, GpuInterconnect::none);
}

TEST(BoxOf, EveryBoxIsValid) {
  for (const int gpus : {1, 2, 3, 4, 8, 16}) {
    EXPECT_TRUE(problems_of(box_of(board_gpu(), gpus)).empty()) << gpus;
  }
}

}  // namespace
}  // namespace tessera
