#include "sim/formats/chakra/chakra_queues.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

using namespace chakra;

constexpr std::array kCommunicationStreams = {StreamKind::tensor_comm,  StreamKind::data_comm,
                                              StreamKind::context_comm, StreamKind::expert_comm,
                                              StreamKind::replica_comm, StreamKind::pipeline_send,
                                              StreamKind::pipeline_recv};

/// How many nodes of each queue have ended before something happens: a queue is in order, so a
/// count says which.
using Ended = std::array<std::int32_t, kStreamCount>;

bool is_communication(const ChakraNode& node) {
  return node.type >= kSend;
}

/// Positions of the nodes, each behind its dependencies, else in the order of the file.
std::vector<std::size_t> order_of(const ChakraTrace& trace) {
  const std::size_t count = trace.nodes.size();
  std::vector<std::vector<std::size_t>> successors(count);
  std::vector<std::size_t> missing(count, 0);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    missing[i] = trace.nodes[i].dependencies.size();
    for (const std::size_t before : trace.nodes[i].dependencies) successors[before].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::size_t next : successors[order.back()]) {
      if (--missing[next] == 0) ready.push(next);
    }
  }
  if (order.size() == count) return order;
  const auto stuck = std::ranges::find_if(missing, [](std::size_t left) { return left > 0; });
  const ChakraNode& node = trace.nodes[static_cast<std::size_t>(stuck - missing.begin())];
  throw InputError({trace.file + ": node of id " + std::to_string(node.id),
                    "depends on nodes that depend on it", "break the cycle"});
}

class Queues {
 public:
  explicit Queues(const ChakraTrace& trace)
      : trace_(trace), positions_(trace.nodes.size()), ended_(trace.nodes.size()) {}

  ChakraQueues build() {
    for (const std::size_t node : order_of(trace_)) {
      if (trace_.nodes[node].type == kMetadata) {
        pass_through(node);
      } else {
        enqueue(node);
      }
    }
    return std::move(queues_);
  }

 private:
  const ChakraNode& node_at(std::size_t position) const {
    return trace_.nodes[queues_.nodes[position].node];
  }
  std::vector<std::size_t>& queue(StreamKind stream) {
    return of_stream_[static_cast<std::size_t>(stream)];
  }

  /// Where those stand that a node depends on, METADATA nodes replaced by theirs.
  std::vector<std::size_t> positions_before(std::size_t node) const {
    std::vector<std::size_t> before;
    for (const std::size_t dependency : trace_.nodes[node].dependencies) {
      const auto& found = positions_[dependency];
      before.insert(before.end(), found.begin(), found.end());
    }
    return before;
  }

  void pass_through(std::size_t node) {
    positions_[node] = needed(positions_before(node), Ended{});
  }

  static void merge(Ended& into, const Ended& other) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
  }

  void enqueue(std::size_t node) {
    const std::vector<std::size_t> before = positions_before(node);
    Ended ended{};
    for (const std::size_t position : before) merge(ended, ended_[position]);
    const StreamKind stream = stream_of(trace_.nodes[node], ended);
    std::vector<std::size_t>& queued = queue(stream);
    const auto at = static_cast<std::size_t>(stream);
    QueuedNode entry{.node = node, .stream = stream, .waits = {}};
    Ended implied{};
    if (!queued.empty()) implied = ended_[queued.back()];
    if (is_communication(trace_.nodes[node]) && ended[at] < implied[at]) ++queues_.added_orders;
    entry.waits = needed(before, implied);
    merge(ended, implied);
    ended[at] = static_cast<std::int32_t>(queued.size()) + 1;
    const std::size_t position = queues_.nodes.size();
    queued.push_back(position);
    ended_[position] = ended;
    positions_[node] = {position};
    queues_.nodes.push_back(std::move(entry));
  }

  /// The last of each queue in `before`, without those that the others or `implied` imply.
  std::vector<std::size_t> needed(const std::vector<std::size_t>& before,
                                  const Ended& implied) const {
    std::array<std::ptrdiff_t, kStreamCount> last;
    last.fill(-1);
    for (const std::size_t position : before) {
      std::ptrdiff_t& known = last[static_cast<std::size_t>(queues_.nodes[position].stream)];
      known = std::max(known, static_cast<std::ptrdiff_t>(position));
    }
    std::vector<std::size_t> waits;
    for (std::size_t stream = 0; stream < last.size(); ++stream) {
      if (last[stream] < 0) continue;
      const auto position = static_cast<std::size_t>(last[stream]);
      const std::int32_t number = ended_[position][stream];
      bool is_implied = implied[stream] >= number;
      for (std::size_t other = 0; other < last.size(); ++other) {
        if (other == stream || last[other] < 0) continue;
        is_implied |= ended_[static_cast<std::size_t>(last[other])][stream] >= number;
      }
      if (!is_implied) waits.push_back(position);
    }
    return waits;
  }

  StreamKind stream_of(const ChakraNode& node, const Ended& ended) {
    if (node.type == kCompute) return node.on_host ? StreamKind::host : StreamKind::compute;
    if (node.type == kLoad) return StreamKind::host_to_device;
    if (node.type == kStore) return StreamKind::device_to_host;
    return communication_stream(node, ended);
  }

  /// Behind a node of the same kind that ends before anyway, else on an empty stream, else behind
  /// any node that ends before, else behind the one that was queued first.
  StreamKind communication_stream(const ChakraNode& node, const Ended& ended) {
    std::array<StreamKind, kCommunicationStreams.size()> streams = kCommunicationStreams;
    if (node.type == kSend) std::rotate(streams.begin(), streams.end() - 2, streams.end());
    if (node.type == kRecv) std::rotate(streams.begin(), streams.end() - 1, streams.end());
    const auto rank_of = [&](StreamKind stream) {
      const std::vector<std::size_t>& queued = queue(stream);
      if (queued.empty()) return std::pair(1, std::size_t{0});
      const std::size_t tail = queued.back();
      const auto at = static_cast<std::size_t>(stream);
      if (ended[at] < ended_[tail][at]) return std::pair(3, tail);
      const ChakraNode& last = node_at(tail);
      const bool alike =
          last.type == node.type && last.group == node.group && last.peer == node.peer;
      return std::pair(alike ? 0 : 2, std::size_t{0});
    };
    return *std::ranges::min_element(streams, {}, rank_of);
  }

  const ChakraTrace& trace_;
  ChakraQueues queues_;
  std::array<std::vector<std::size_t>, kStreamCount> of_stream_;  ///< positions in `queues_`
  std::vector<std::vector<std::size_t>> positions_;  ///< by node: where it stands in `queues_`
  std::vector<Ended> ended_;                         ///< by position, itself included
};

}  // namespace

ChakraQueues queue_nodes(const ChakraTrace& trace) {
  return Queues(trace).build();
}

}  // namespace tessera
