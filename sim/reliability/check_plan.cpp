#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/reliability/cluster_run.h"

namespace tessera {
namespace {

[[noreturn]] void refuse(std::string what, std::string hint) {
  throw InputError({"", std::move(what), std::move(hint)});
}

}  // namespace

void check_plan(const RunPlan& plan) {
  if (plan.nodes < 1 || plan.spares < 0 || plan.repair_crews < 0)
    refuse("has " + std::to_string(plan.nodes) + " nodes",
           "a job needs one, and no fewer spares than 0");
  if (plan.length.value() <= 0) refuse("lasts no time", "give more than 0 days");
  if (plan.interval.value() <= 0)
    refuse("has checkpoints without an interval", "give more than 0 s");
  if (plan.full_every < 1 || !(plan.write_slowdown >= 1))
    refuse("writes one whole checkpoint of " + std::to_string(plan.full_every) + ", " +
               std::to_string(plan.write_slowdown) + " times slower",
           "give numbers of at least 1");
  if (plan.elastic && plan.replica_wise)
    refuse("is both elastic and replica-wise", "choose one policy");
  if (plan.replicas < 1 || plan.least_replicas < 1 || plan.least_replicas > plan.replicas)
    refuse("needs at least " + std::to_string(plan.least_replicas) + " of " +
               std::to_string(plan.replicas) + " replicas",
           "give a number from 1 to that of the replicas");
  const auto& paces = plan.pace_of_replicas;
  if (!paces.empty() && (paces.size() != static_cast<std::size_t>(plan.replicas) + 1 ||
                         paces.back() != 1 || std::ranges::min(paces) < 0))
    refuse("has no pace for every number of replicas",
           "give one from 0 to " + std::to_string(plan.replicas) + " replicas, the last 1");
  for (const RecordedFault& fault : plan.recorded) {
    if (fault.node < 0 || fault.node >= plan.nodes + plan.spares)
      refuse("records node " + std::to_string(fault.node) + " of " +
                 std::to_string(plan.nodes + plan.spares),
             "leave out what is not of the cluster");
  }
}

}  // namespace tessera
