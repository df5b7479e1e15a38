#include "sim/formats/chakra/chakra_queues.h"

#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ChakraNode node(chakra::NodeType type, std::vector<std::size_t> after = {}) {
  ChakraNode made;
  made.type = type;
  made.dependencies = std::move(after);
  return made;
}

ChakraTrace trace_of(std::vector<ChakraNode> nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].id = i + 1;
  return {.file = "rank.et", .version = "1.0.0", .nodes = std::move(nodes)};
}

TEST(ChakraQueues, EveryKindHasItsStream) {
  ChakraNode host = node(chakra::kCompute);
  host.on_host = true;
  const ChakraQueues queues =
      queue_nodes(trace_of({node(chakra::kCompute), host, node(chakra::kLoad), node(chakra::kStore),
                            node(chakra::kSend), node(chakra::kRecv), node(chakra::kCollective)}));
  std::vector<StreamKind> streams;
  for (const QueuedNode& queued : queues.nodes) streams.push_back(queued.stream);
  EXPECT_THAT(streams,
              ElementsAre(StreamKind::compute, StreamKind::host, StreamKind::host_to_device,
                          StreamKind::device_to_host, StreamKind::pipeline_send,
                          StreamKind::pipeline_recv, StreamKind::tensor_comm));
}

TEST(ChakraQueues, WaitsAreNotRepeatedThatOthersImply) {
  // 0 -> 1 -> 3, 0 -> 2 -> 3: the send waits for both, and for 0 through them.
  const ChakraQueues queues =
      queue_nodes(trace_of({node(chakra::kCompute), node(chakra::kCollective, {0}),
                            node(chakra::kRecv, {0}), node(chakra::kSend, {0, 1, 2})}));
  EXPECT_THAT(queues.nodes[1].waits, ElementsAre(0));
  EXPECT_THAT(queues.nodes[3].waits, ElementsAre(1, 2));
  EXPECT_EQ(queues.added_orders, 0);
}

TEST(ChakraQueues, AnOrderIsAddedOnlyWhereStreamsRunOut) {
  std::vector<ChakraNode> nodes(7, node(chakra::kCollective));
  EXPECT_EQ(queue_nodes(trace_of(nodes)).added_orders, 0);
  nodes.push_back(node(chakra::kCollective));
  const ChakraQueues queues = queue_nodes(trace_of(nodes));
  EXPECT_EQ(queues.added_orders, 1);
  EXPECT_EQ(queues.nodes[7].stream, queues.nodes[0].stream);
}

TEST(ChakraQueues, MetadataPassesDependenciesOn) {
  const ChakraQueues queues = queue_nodes(
      trace_of({node(chakra::kSend, {1}), node(chakra::kMetadata, {2}), node(chakra::kCompute)}));
  ASSERT_EQ(queues.nodes.size(), 2U);
  EXPECT_EQ(queues.nodes[1].node, 0U);
  EXPECT_THAT(queues.nodes[1].waits, ElementsAre(0));
}

TEST(ChakraQueues, ACycleIsNamed) {
  const ChakraTrace cycle =
      trace_of({node(chakra::kCompute), node(chakra::kCompute, {2}), node(chakra::kCompute, {1})});
  try {
    queue_nodes(cycle);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().text(),
              "rank.et: node of id 2: depends on nodes that depend on it; break the cycle");
  }
}

/// Positions that must have ended before each starts, as queues and waits say.
std::vector<std::set<std::size_t>> enforced(const ChakraQueues& queues) {
  std::vector<std::set<std::size_t>> before(queues.nodes.size());
  std::map<StreamKind, std::size_t> last;
  const auto add = [&](std::size_t to, std::size_t from) {
    before[to].insert(from);
    before[to].insert(before[from].begin(), before[from].end());
  };
  for (std::size_t i = 0; i < queues.nodes.size(); ++i) {
    const auto ahead = last.find(queues.nodes[i].stream);
    if (ahead != last.end()) add(i, ahead->second);
    for (const std::size_t wait : queues.nodes[i].waits) add(i, wait);
    last[queues.nodes[i].stream] = i;
  }
  return before;
}

TEST(ChakraQueues, EveryDependencyOfRandomTracesIsKept) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<ChakraNode> nodes;
    for (std::size_t i = 0; i < 40; ++i) {
      std::set<std::size_t> after;
      for (std::size_t k = random() % 4; i > 0 && k > 0; --k) after.insert(random() % i);
      nodes.push_back(
          node(static_cast<chakra::NodeType>(1 + random() % 7), {after.begin(), after.end()}));
      nodes.back().on_host = random() % 5 == 0;
    }
    const ChakraTrace trace = trace_of(nodes);
    const ChakraQueues queues = queue_nodes(trace);
    const std::vector<std::set<std::size_t>> before = enforced(queues);
    std::map<std::size_t, std::size_t> position;  // metadata nodes have none
    for (std::size_t i = 0; i < queues.nodes.size(); ++i) position[queues.nodes[i].node] = i;
    for (const auto& [number, at] : position) {
      for (const std::size_t dependency : trace.nodes[number].dependencies) {
        if (!position.contains(dependency)) continue;
        EXPECT_TRUE(before[at].contains(position[dependency]));
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
