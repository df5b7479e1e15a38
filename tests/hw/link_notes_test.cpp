#include "hw/link_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hw/boxes.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two nodes of four GPUs; the host link of a GPU carries 32 GB/s.
ClusterSpec two_nodes(BytesPerSecond nic) {
  ClusterSpec cluster = boxes::alone(boxes::a100_mesh());
  cluster.node_count = 2;
  cluster.node.nic_count = 4;
  cluster.node.nic_bandwidth = nic;
  return cluster;
}

TEST(LinkNotes, SayNothingOfANodeAsItIsSold) {
  EXPECT_THAT(notes_on_links(two_nodes(25_GBps)), IsEmpty());
}

TEST(LinkNotes, SayWhatCapsANicThatIsFasterThanItsSlot) {
  EXPECT_THAT(notes_on_links(two_nodes(50_GBps)),
              ElementsAre(AllOf(HasSubstr("NICs carry 50 GB/s"), HasSubstr("gpu0->socket0"),
                                HasSubstr("32 GB/s"))));
  ClusterSpec alone = two_nodes(50_GBps);
  alone.node_count = 1;  // nothing leaves the node
  EXPECT_THAT(notes_on_links(alone), IsEmpty());
}

TEST(LinkNotes, SayWhichLinksAGpuOfAnotherVendorUses) {
  ClusterSpec cluster = boxes::alone(boxes::a100_mesh());
  cluster.node.gpu.id = "MI300X";
  cluster.node.gpu.vendor = "AMD";
  cluster.node.gpu.nvlink_links = 7;
  cluster.node.gpu.nvlink_bandwidth = 448_GBps;
  EXPECT_THAT(notes_on_links(cluster),
              ElementsAre(AllOf(HasSubstr("MI300X has 7 links of 64 GB/s of AMD"),
                                HasSubstr("node HGX-A100-4 was described with links of 25 GB/s"))));
}

TEST(LinkNotes, SayThatCardsHaveNoPeerToPeer) {
  ClusterSpec cluster = boxes::alone(boxes::a100_mesh());
  cluster.node.gpu.peer_to_peer = false;
  EXPECT_THAT(notes_on_links(cluster), IsEmpty());  // NVLinks join them all
  cluster.node.pairs.pop_back();
  EXPECT_THAT(notes_on_links(cluster),
              ElementsAre(AllOf(HasSubstr("no peer-to-peer"), HasSubstr("staged_bandwidth"))));
  cluster.node.staged_bandwidth = 3_GBps;
  EXPECT_THAT(notes_on_links(cluster), ElementsAre(HasSubstr("go through the host's")));
}

}  // namespace
}  // namespace tessera
