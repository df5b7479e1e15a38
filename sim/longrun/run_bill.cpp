#include "hw/power.h"
#include "sim/longrun/run_answer.h"

namespace tessera {
namespace {

/// Of one node in which nothing runs.
Watts idle_node_power(const NodeSpec& node) {
  return idle_power(node.gpu) * static_cast<double>(node.gpu_count) + node.host_power;
}

}  // namespace

RunBill run_bill(const ClusterSpec& cluster, const StepReport& step, const RunPlan& plan,
                 const RunStatistics& runs) {
  RunBill bill;
  const NodeSpec& node = cluster.node;
  const double hours = runs.wall.mean;
  if (step.energy && step.step_time.value() > 0) {
    const double trained = runs.useful.mean + runs.slow.mean + runs.lost.mean;
    const Watts training(step.energy->facility_j / step.step_time.value());
    const Watts idle = idle_node_power(node) * cluster.pue;
    bill.energy_mwh = (training.value() * trained + idle.value() * plan.nodes * (hours - trained) +
                       idle.value() * plan.spares * hours) /
                      1e6;
  }
  if (node.gpu.price > 0)
    bill.dollars = node.gpu.price * node.gpu_count * (plan.nodes + plan.spares) * hours;
  return bill;
}

}  // namespace tessera
