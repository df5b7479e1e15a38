#include "sim/remat/baselines/articulation.h"

#include <algorithm>

namespace tessera::remat {

std::vector<TensorId> forward_articulation(const Graph& graph) {
  const OpId end = graph.first_backward();
  std::vector<std::int32_t> starts(end + 1, 0);  // crossing tensors: +1 behind the producer
  std::vector<TensorId> last_to_cross(end + 1, -1);
  for (TensorId q = 0; q < graph.tensors() && graph.producer(q) < end; ++q) {
    OpId last = -1;
    for (const OpId reader : graph.consumers(q))
      if (reader < end) last = std::max(last, reader);
    const OpId maker = graph.producer(q);
    if (last <= maker) continue;
    ++starts[maker];
    --starts[last];
    // Boundary t lies between operators t and t + 1; the newest to cross it is a candidate.
    last_to_cross[maker] = q;
  }
  std::vector<TensorId> points;
  std::int32_t crossing = 0;
  TensorId alone = -1;
  for (OpId t = 0; t + 1 < end; ++t) {
    crossing += starts[t];
    if (last_to_cross[t] >= 0) alone = last_to_cross[t];
    if (crossing == 1 && alone >= 0 && graph.producer(alone) == t) points.push_back(alone);
  }
  return points;
}

}  // namespace tessera::remat
