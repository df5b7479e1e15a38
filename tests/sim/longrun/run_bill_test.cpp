#include <gtest/gtest.h>

#include "sim/longrun/run_answer.h"

namespace tessera {
namespace {

/// Ten nodes of eight GPUs of 400 W, 60 W idle; hosts of 1 kW; PUE 1.5.
ClusterSpec cluster() {
  ClusterSpec spec;
  spec.pue = 1.5;
  spec.node.gpu_count = 8;
  spec.node.host_power = Watts(1000);
  spec.node.gpu.tdp = Watts(400);
  return spec;
}

/// Ten hours, of which eight train.
RunStatistics runs() {
  RunStatistics statistics;
  statistics.wall.mean = 10;
  statistics.useful.mean = 7;
  statistics.lost.mean = 1;
  return statistics;
}

StepFigures step(double facility_j) {
  return {.step_time = 2_s, .facility_j = facility_j, .idle = Watts(10 * 1480)};
}

TEST(RunBill, TrainingAtItsPowerTheRestIdle) {
  RunPlan plan;
  plan.nodes = 10;
  plan.spares = 1;
  const RunBill bill = run_bill(cluster(), step(100'000), plan, runs(), 2);
  // 50 kW for 8 h; a node idles at (8 x 60 + 1000) x 1.5 = 2.22 kW: ten for 2 h, the spare for 10
  // h.
  EXPECT_NEAR(*bill.energy_mwh, 0.4 + 0.0444 + 0.0222, 1e-12);
  EXPECT_NEAR(*bill.dollars, 2 * 8 * 11 * 10, 1e-9);
}

TEST(RunBill, EveryGpuIsPaidForAtThePriceThatIsGiven) {
  RunPlan plan;
  plan.nodes = 10;
  const RunBill bill = run_bill(cluster(), step(-1), plan, runs(), 3.5);
  EXPECT_NEAR(*bill.dollars, 3.5 * 8 * 10 * 10, 1e-9);
}

TEST(RunBill, SaysNothingOfWhatIsNotKnown) {
  ClusterSpec unknown = cluster();
  const RunBill bill = run_bill(unknown, step(-1), {}, runs(), 0);
  EXPECT_FALSE(bill.energy_mwh);
  EXPECT_FALSE(bill.dollars);
}

}  // namespace
}  // namespace tessera
