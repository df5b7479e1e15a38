#include "sim/engine/collective_board.h"

#include <algorithm>
#include <utility>

namespace tessera {

CollectiveBoard::CollectiveBoard(const CommunicationPlan& plan, Transfers& transfers)
    : plan_(plan), transfers_(transfers) {}

void CollectiveBoard::join(int rank, const ProgramOp& collective, std::int32_t sequence,
                           OnEnd on_end) {
  const int communicator = plan_.communicators().index_of(rank, collective.group);
  const Key key{communicator, sequence};
  Meeting& meeting = meetings_[key];
  meeting.joined.push_back(rank);
  meeting.on_end.push_back(std::move(on_end));
  if (meeting.joined.size() == plan_.communicators()[communicator].ranks.size())
    start(key, collective);
}

void CollectiveBoard::start(Key key, const ProgramOp& collective) {
  const Seconds all_joined = transfers_.now();
  transfers_.start(plan_.collective(key.first, collective.kind, collective.bytes),
                   [this, key, all_joined] { release(key, all_joined); });
}

void CollectiveBoard::release(Key key, Seconds all_joined) {
  const auto node = meetings_.extract(key);
  const int last_rank = node.mapped().joined.back();
  for (const OnEnd& on_end : node.mapped().on_end) on_end(all_joined, last_rank);
}

const DeviceLoad& CollectiveBoard::load(int rank, const ProgramOp& collective) const {
  const int communicator = plan_.communicators().index_of(rank, collective.group);
  return plan_.collective(communicator, collective.kind, collective.bytes).load;
}

std::string CollectiveBoard::missing(int rank, GroupKind group, std::int32_t sequence) const {
  const int communicator = plan_.communicators().index_of(rank, group);
  const std::vector<int>& joined = meetings_.at({communicator, sequence}).joined;
  std::string list;
  for (const int member : plan_.communicators()[communicator].ranks) {
    if (std::find(joined.begin(), joined.end(), member) != joined.end()) continue;
    list += (list.empty() ? "gpu " : ", gpu ") + std::to_string(member);
  }
  return list;
}

}  // namespace tessera
