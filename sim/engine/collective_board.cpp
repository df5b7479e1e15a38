#include "sim/engine/collective_board.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tessera {

CollectiveBoard::CollectiveBoard(const CommunicationPlan& plan, Transfers& transfers)
    : plan_(plan), transfers_(transfers), meetings_(plan.communicators().all().size()) {}

CollectiveBoard::Meeting& CollectiveBoard::meeting(int communicator, std::int32_t sequence) {
  std::vector<Meeting>& meetings = meetings_[static_cast<std::size_t>(communicator)];
  for (Meeting& meeting : meetings) {
    if (meeting.sequence == sequence) return meeting;
  }
  if (spare_.empty()) {
    meetings.emplace_back();
  } else {
    meetings.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  meetings.back().sequence = sequence;
  return meetings.back();
}

void CollectiveBoard::join(int rank, const PlannedTransfer& collective, std::int32_t sequence,
                           OnEnd on_end) {
  const int communicator = plan_.folding().communicator_of(collective.communicator);
  Meeting& met = meeting(communicator, sequence);
  met.joined.push_back(rank);
  met.on_end.push_back(std::move(on_end));
  if (static_cast<int>(met.joined.size()) < plan_.simulated_members(communicator)) return;
  const Seconds all_joined = transfers_.now();
  transfers_.start(collective.transfer, [this, communicator, sequence, all_joined] {
    release(communicator, sequence, all_joined);
  });
}

void CollectiveBoard::release(int communicator, std::int32_t sequence, Seconds all_joined) {
  std::vector<Meeting>& meetings = meetings_[static_cast<std::size_t>(communicator)];
  const auto found = std::ranges::find(meetings, sequence, &Meeting::sequence);
  Meeting ended = std::move(*found);
  if (found != meetings.end() - 1) *found = std::move(meetings.back());
  meetings.pop_back();
  const int last_rank = ended.joined.back();
  for (const OnEnd& on_end : ended.on_end) on_end(all_joined, last_rank);
  ended.joined.clear();
  ended.on_end.clear();
  spare_.push_back(std::move(ended));
}

std::string CollectiveBoard::missing(const PlannedTransfer& collective,
                                     std::int32_t sequence) const {
  const RankFolding& folding = plan_.folding().ranks;
  const int communicator = plan_.folding().communicator_of(collective.communicator);
  std::set<int> missing;
  for (const int member : plan_.communicators()[communicator].ranks) {
    missing.insert(folding.of(member));
  }
  for (const Meeting& meeting : meetings_[static_cast<std::size_t>(communicator)]) {
    if (meeting.sequence != sequence) continue;
    for (const int member : meeting.joined) missing.erase(member);
  }
  std::string list;
  for (const int member : missing) {
    list += (list.empty() ? "gpu " : ", gpu ") + std::to_string(member);
  }
  return list;
}

}  // namespace tessera
