#include "app/search/open_layouts.h"

#include <algorithm>

namespace tessera {

std::vector<Candidate> OpenLayouts::taken(ByBound& queue, Seconds slowest, std::size_t most) {
  std::vector<Candidate> taken;
  while (!queue.empty() && queue.top().bound.step_time <= slowest && taken.size() < most) {
    const Candidate& next = queue.top();
    if (!taken.empty() && (next.level != taken.front().level || next.is_finest())) break;
    taken.push_back(queue.top());
    queue.pop();
  }
  return taken;
}

std::vector<Candidate> OpenLayouts::take(Seconds slowest, std::size_t most) {
  std::vector<Candidate> found = taken(recipes_, slowest, most);
  return found.empty() ? taken(others_, slowest, most) : found;
}

bool OpenLayouts::has_any(Seconds slowest) const {
  return lowest_bound(slowest).has_value();
}

std::optional<Seconds> OpenLayouts::lowest_bound(Seconds slowest) const {
  std::optional<Seconds> lowest;
  for (const ByBound* queue : {&recipes_, &others_}) {
    if (queue->empty() || queue->top().bound.step_time > slowest) continue;
    if (!lowest || queue->top().bound.step_time < *lowest) lowest = queue->top().bound.step_time;
  }
  return lowest;
}

OpenLayouts::Split OpenLayouts::split(Seconds slowest) const {
  Split split;
  for (const ByBound* queue : {&recipes_, &others_})
    for (const Candidate& candidate : queue->all())
      ++(candidate.bound.step_time <= slowest ? split.open : split.slower);
  return split;
}

}  // namespace tessera
