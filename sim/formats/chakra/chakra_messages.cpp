#include "sim/formats/chakra/chakra_messages.h"

#include <string>

#include "sim/formats/chakra/chakra_replay.h"

namespace tessera {

using chakra::kRecv;
using chakra::kSend;

ChakraMessages::Channel ChakraMessages::channel_of(const ChakraNode& node, int rank) {
  return node.type == kSend ? Channel(rank, node.peer, node.tag)
                            : Channel(node.peer, rank, node.tag);
}

ChakraMessages::ChakraMessages(const ChakraJob& job) {
  const auto ranks = static_cast<std::int64_t>(job.ranks.size());
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    const ChakraTrace& trace = job.ranks[static_cast<std::size_t>(rank)];
    for (const ChakraNode& node : trace.nodes) {
      if (node.type != kSend && node.type != kRecv) continue;
      if (node.peer < 0 || node.peer >= ranks || node.peer == rank) {
        problems_.push_back(
            {trace.file + ": node of id " + std::to_string(node.id),
             std::string(node.type == kSend ? "sends to" : "receives from") + " rank " +
                 std::to_string(node.peer),
             "give comm_dst of sends and comm_src of receives, and a trace of every rank"});
        continue;
      }
      Counts& counts = channels_[channel_of(node, rank)];
      ++(node.type == kSend ? counts.sends : counts.receives);
    }
  }
  std::int32_t next = 0;
  for (auto& [channel, counts] : channels_) {
    counts.first = next;
    next += counts.sends;
    if (counts.sends == counts.receives) continue;
    const auto& [from, to, tag] = channel;
    problems_.push_back({"messages of tag " + std::to_string(tag) + " from rank " +
                             std::to_string(from) + " to rank " + std::to_string(to),
                         std::to_string(counts.sends) + " are sent and " +
                             std::to_string(counts.receives) + " received",
                         "give whole traces of the same step"});
  }
}

std::int32_t ChakraMessages::number_of(const ChakraNode& node, int rank) {
  const auto found = channels_.find(channel_of(node, rank));
  if (found == channels_.end()) return -1;
  Counts& counts = found->second;
  return counts.first + (node.type == kSend ? counts.next_send++ : counts.next_receive++);
}

}  // namespace tessera
