#include "hw/power.h"
#include "sim/longrun/run_answer.h"

namespace tessera {
namespace {

/// Of one node in which nothing runs.
Watts idle_node_power(const NodeSpec& node) {
  return idle_power(node.gpu) * static_cast<double>(node.gpu_count) + node.host_power;
}

}  // namespace

StepFigures figures_of(const StepReport& report) {
  const StepEnergy energy = report.energy.value_or(StepEnergy());
  return {.step_time = report.step_time,
          .tokens_per_s = report.tokens_per_s,
          .samples_per_s = report.samples_per_s,
          .fits = report.memory.fits,
          .facility_j = report.energy ? report.energy->facility_j : -1,
          .idle = energy.idle,
          .power = {.host_is_confirmed = energy.host_is_confirmed,
                    .has_hosts = energy.hosts_j > 0,
                    .node_mean = energy.node_mean,
                    .node_peak = energy.node_peak,
                    .rack_mean = energy.rack_mean,
                    .rack_peak = energy.rack_peak}};
}

RunBill run_bill(const ClusterSpec& cluster, const StepFigures& step, const RunPlan& plan,
                 const RunStatistics& runs, double price) {
  RunBill bill;
  bill.power = step.power;
  const NodeSpec& node = cluster.node;
  const double hours = runs.wall.mean;
  if (step.facility_j >= 0 && step.step_time.value() > 0) {
    const double trained = runs.useful.mean + runs.slow.mean + runs.lost.mean;
    const Watts training(step.facility_j / step.step_time.value());
    const Watts idle = step.idle * cluster.pue;
    const Watts spare = (idle_node_power(node) + cluster.switch_power) * cluster.pue;
    bill.energy_mwh = (training.value() * trained + idle.value() * (hours - trained) +
                       spare.value() * plan.spares * hours) /
                      1e6;
  }
  if (price > 0) bill.dollars = price * node.gpu_count * (plan.nodes + plan.spares) * hours;
  return bill;
}

}  // namespace tessera
