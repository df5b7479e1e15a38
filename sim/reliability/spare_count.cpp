#include "sim/reliability/spare_count.h"

#include <cmath>

namespace tessera {
namespace {

/// Smallest count that a Poisson variable of `mean` does not exceed with probability `share`.
int poisson_quantile(double mean, double share, int most) {
  double sum = 0;
  for (int count = 0; count <= most; ++count) {
    sum += std::exp(count * std::log(mean) - mean - std::lgamma(count + 1.0));
    if (sum >= share) return count;
  }
  return -1;
}

}  // namespace

NodesOut nodes_out(const FailureModel& failures, int nodes) {
  NodesOut out;
  double weighted = 0;
  for (const FailureClass& of : failures.classes) {
    if (of.announced) continue;
    const double down = of.per_node_day * of.repair.value() / 86'400;
    // An event meets any of its nodes; those that are out already cannot fail.
    const double share = down * of.takes_nodes / (1 + down);
    out.mean += share * nodes;
    weighted += share * nodes * of.takes_nodes;
  }
  if (out.mean > 0) out.group = weighted / out.mean;
  return out;
}

int spares_for(const FailureModel& failures, int nodes, double share) {
  for (int spares = 0; spares <= nodes; ++spares) {
    const NodesOut out = nodes_out(failures, nodes + spares);
    if (out.mean == 0) return 0;
    const int groups = poisson_quantile(out.mean / out.group, share, spares);
    if (groups >= 0 && std::ceil(groups * out.group) <= spares) return spares;
  }
  return -1;
}

}  // namespace tessera
