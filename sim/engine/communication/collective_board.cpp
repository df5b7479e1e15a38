#include "sim/engine/communication/collective_board.h"

#include <algorithm>
#include <set>

namespace tessera {

/// Members of a thousand GPUs have left the processor's caches since they were visited last.
void CollectiveBoard::visit_joined(const Meeting& met, auto&& visit) {
  const std::size_t count = met.joined.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 2 < count) __builtin_prefetch(met.joined[i + 2]);
    if (i + 1 < count) met.joined[i + 1]->prefetch();
    visit(*met.joined[i]);
  }
}

CollectiveBoard::CollectiveBoard(const CommunicationPlan& plan, Transfers& transfers)
    : plan_(plan), transfers_(transfers), meetings_(plan.communicators().all().size()) {}

CollectiveBoard::Meeting* CollectiveBoard::find(int communicator, std::int32_t sequence) const {
  const std::vector<Meeting*>& meetings = meetings_[static_cast<std::size_t>(communicator)];
  const auto found = std::ranges::find(meetings, sequence, &Meeting::sequence);
  return found == meetings.end() ? nullptr : *found;
}

CollectiveBoard::Meeting& CollectiveBoard::add(int communicator, std::int32_t sequence) {
  if (spare_.empty()) spare_.push_back(&all_.emplace_back());
  Meeting& met = *spare_.back();
  spare_.pop_back();
  meetings_[static_cast<std::size_t>(communicator)].push_back(&met);
  met.sequence = sequence;
  met.communicator = communicator;
  met.has_started = false;
  return met;
}

void CollectiveBoard::join(CollectiveMember& member, const PlannedTransfer& collective,
                           std::int32_t sequence) {
  const int communicator = communicator_of(collective);
  Meeting* known = find(communicator, sequence);
  Meeting& met = known != nullptr ? *known : add(communicator, sequence);
  met.joined.push_back(&member);
  if (static_cast<int>(met.joined.size()) < plan_.simulated_members(communicator)) return;
  start(met, collective.transfer);
}

void CollectiveBoard::start(Meeting& met, const Transfer& transfer) {
  met.all_joined = transfers_.now();
  visit_joined(met, [](CollectiveMember& member) { member.collective_started(); });
  met.has_started = true;
  met.stretch = stretch_of(met);
  transfers_.start_paced(transfer, met.stretch, met.work, [this, &met] { release(met); });
}

double CollectiveBoard::stretch_of(const Meeting& met) {
  double stretch = 1;
  for (const CollectiveMember* member : met.joined) {
    stretch = std::max(stretch, member->stretch_of_collectives());
  }
  return stretch;
}

void CollectiveBoard::change_pace(const PlannedTransfer& collective, std::int32_t sequence) {
  Meeting* met = find(communicator_of(collective), sequence);
  if (met == nullptr || !met->has_started) return;
  const double stretch = stretch_of(*met);
  if (stretch == met->stretch) return;
  met->stretch = stretch;
  transfers_.change_pace(collective.transfer, stretch, met->work);
}

void CollectiveBoard::release(Meeting& met) {
  std::erase(meetings_[static_cast<std::size_t>(met.communicator)], &met);
  const int last_rank = met.joined.back()->rank();
  visit_joined(
      met, [&](CollectiveMember& member) { member.collective_ended(met.all_joined, last_rank); });
  met.joined.clear();
  spare_.push_back(&met);
}

std::string CollectiveBoard::missing(const PlannedTransfer& collective,
                                     std::int32_t sequence) const {
  const RankFolding& folding = plan_.folding().ranks;
  const int communicator = communicator_of(collective);
  std::set<int> missing;
  for (const int member : plan_.communicators()[communicator].ranks) {
    missing.insert(folding.of(member));
  }
  if (const Meeting* met = find(communicator, sequence)) {
    for (const CollectiveMember* member : met->joined) missing.erase(member->rank());
  }
  std::string list;
  for (const int member : missing) {
    list += (list.empty() ? "gpu " : ", gpu ") + std::to_string(member);
  }
  return list;
}

}  // namespace tessera
