#include "sim/collectives/rings/ring_shift.h"

#include <vector>

namespace tessera {

CollectiveCost ring_shift_cost(const Topology& topology, Bytes bytes, std::span<const int> ranks,
                               const CollectiveTuning& tuning, bool copy_engines) {
  const std::size_t count = ranks.size();
  std::vector<Bytes> sent(count * count);
  for (std::size_t i = 0; count > 1 && i < count; ++i) sent[i * count + (i + 1) % count] = bytes;
  return all_to_all_cost(topology, sent, ranks, tuning, copy_engines);
}

}  // namespace tessera
