#include <gtest/gtest.h>

#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/memory/packed_ops.h"
#include "sim/plan/memory/stage_planner.h"
#include "sim/plan/plan.h"
#include "tests/workloads/models.h"

namespace tessera {
namespace {

constexpr int kLayers = 12;

/// GPT-2 on one GPU, kernels by the roofline.
Scenario one_gpu(const std::string& cluster) {
  ModelSpec model = test::gpt2_large();
  model.layers = kLayers;
  Scenario scenario{.name = "gpt", .model = model, .cluster = {}, .step = {}};
  const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  scenario.cluster = load_cluster(cluster, catalog);
  scenario.step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 2, 1024));
  scenario.step.global_batch = 2 * 4;
  scenario.predictor_form = PredictorForm::roofline;
  scenario.memory.planner = MemoryPlanner::tessera;
  scenario.memory.thorough = false;
  return scenario;
}

PlannedSteps planned(Scenario scenario, Bytes budget) {
  scenario.memory.budget = budget;
  return plan_step_memory(scenario, PredictorWeights());
}

/// With `share` of the activations above what is held all the time.
Bytes budget_at(const Scenario& scenario, double share) {
  Scenario plain = scenario;
  plain.memory.packing = ActivationPacking::as_it_is;
  const StageMemoryPlan whole = planned(plain, 80_GiB).memory.stages.at(0);
  const auto activations = static_cast<double>((whole.base_peak - whole.static_bytes).value());
  return whole.static_bytes + Bytes(static_cast<std::int64_t>(share * activations));
}

TEST(PackedTensors, MasksOfDropoutWaitAsOneBitPerElement) {
  const Scenario scenario = one_gpu("dgx-a100");
  const ModelGraph graph = build_model_graph(scenario.model, scenario.step);
  const StageOps whole = stage_ops(graph, {0, static_cast<int>(graph.order.size())}, false, false);
  const StageOps packed = with_packed_tensors(whole, ActivationPacking::masks);
  // Two for each layer behind attention and MLP, and the embedding's; 2 x 1024 tokens of 1280.
  const Bytes mask(2 * 1024 * 1280), bits(2 * 1024 * 1280 / 8);
  int masks = 0;
  for (std::size_t t = whole.tensors.size(); t < packed.tensors.size(); ++t) {
    if (!packed.tensors[t].name.ends_with(".packed")) continue;
    const auto of = std::ranges::find_if(whole.tensors, [&](const StageTensor& tensor) {
      return tensor.name + ".packed" == packed.tensors[t].name;
    });
    ASSERT_NE(of, whole.tensors.end());
    if (of->bytes != mask) continue;
    EXPECT_EQ(packed.tensors[t].bytes, bits) << of->name;
    ++masks;
  }
  EXPECT_EQ(masks, 2 * kLayers + 1);
  EXPECT_EQ(packed.ops.size() - whole.ops.size(), packed.tensors.size() - whole.tensors.size());
}

TEST(PackedTensors, NothingOfThePackedTensorIsReadInBackward) {
  const Scenario scenario = one_gpu("dgx-a100");
  const ModelGraph graph = build_model_graph(scenario.model, scenario.step);
  const StageOps whole = stage_ops(graph, {0, static_cast<int>(graph.order.size())}, false, false);
  for (const ActivationPacking packing : {ActivationPacking::masks, ActivationPacking::eight_bit}) {
    const StageOps packed = with_packed_tensors(whole, packing);
    ASSERT_GT(packed.ops.size(), whole.ops.size());
    std::vector<char> written(packed.tensors.size(), 0);
    for (std::size_t i = 0; i < packed.ops.size(); ++i) {
      const StageOp& op = packed.ops[i];
      if (op.op->name.ends_with(".pack")) {
        EXPECT_LT(i, static_cast<std::size_t>(packed.forward_ops));
        EXPECT_EQ(written[static_cast<std::size_t>(op.reads.at(0))], 1) << op.op->name;
        written[static_cast<std::size_t>(op.reads.at(0))] = 2;
      } else {
        for (const int read : op.reads)
          EXPECT_NE(written[static_cast<std::size_t>(read)], 2) << op.op->name;
      }
      for (const int made : op.writes) written[static_cast<std::size_t>(made)] = 1;
    }
  }
}

TEST(MemoryMeans, PackingIsTakenWhereItWinsAndNotWhereNothingIsShort) {
  Scenario scenario = one_gpu("dgx-a100");
  scenario.memory.swap = false;
  const Bytes budget = budget_at(scenario, 0.75);
  const PlannedSteps plain = planned(scenario, budget);
  scenario.memory.packing = ActivationPacking::masks;
  const PlannedSteps packing = planned(scenario, budget);
  ASSERT_TRUE(plain.memory.feasible());
  ASSERT_TRUE(packing.memory.feasible());
  EXPECT_LE(packing.memory.stages[0].planned_peak, budget);
  EXPECT_LE(packing.memory.added_time, plain.memory.added_time);
  const bool packs = packing.memory.stages[0].note.find("packed") != std::string::npos;
  EXPECT_EQ(packs, packing.memory.added_time < plain.memory.added_time);
  EXPECT_EQ(planned(scenario, 80_GiB).memory.stages[0].note, "");
}

TEST(MemoryMeans, EightBitAreNoSlowerThanMasksAlone) {
  Scenario scenario = one_gpu("dgx-a100");
  scenario.memory.swap = false;
  for (const double share : {0.5, 0.65, 0.8}) {
    const Bytes budget = budget_at(scenario, share);
    scenario.memory.packing = ActivationPacking::masks;
    const PlannedSteps masks = planned(scenario, budget);
    scenario.memory.packing = ActivationPacking::eight_bit;
    const PlannedSteps eight_bit = planned(scenario, budget);
    ASSERT_TRUE(masks.memory.feasible());
    ASSERT_TRUE(eight_bit.memory.feasible());
    EXPECT_LE(eight_bit.memory.added_time, masks.memory.added_time) << share;
  }
}

TEST(MemoryMeans, StatesWaitOnTheHostWhereActivationsAloneDoNotFit) {
  Scenario scenario = one_gpu("dgx-a100");
  const StageMemoryPlan whole = planned(scenario, 80_GiB).memory.stages.at(0);
  const Bytes budget = whole.static_bytes;
  EXPECT_FALSE(planned(scenario, budget).memory.feasible());
  scenario.memory.optimizer_states = OptimizerStates::on_host;
  const PlannedSteps steps = planned(scenario, budget);
  const StageMemoryPlan& plan = steps.memory.stages.at(0);
  ASSERT_TRUE(plan.feasible) << plan.infeasible;
  EXPECT_LE(plan.planned_peak, budget);
  EXPECT_LT(plan.static_bytes, whole.static_bytes);
  EXPECT_NE(plan.note.find("optimizer states"), std::string::npos);
}

TEST(MemoryMeans, StatesStayWhereCopyingThemCostsMoreThanRunningAgain) {
  Scenario scenario = one_gpu("dgx-a100");
  scenario.memory.optimizer_states = OptimizerStates::on_host;
  // 0.4 billion parameters x 12 bytes over a link of 25 GB/s, twice: 0.4 s; a few layers less.
  const PlannedSteps steps = planned(scenario, budget_at(scenario, 0.9));
  ASSERT_TRUE(steps.memory.feasible());
  EXPECT_EQ(steps.memory.stages[0].note.find("optimizer states"), std::string::npos);
}

TEST(MemoryMeans, DrivesAreReadAndWrittenAtTheGpusShareOfThem) {
  Scenario scenario = one_gpu("dgx-h100");
  const StageMemoryPlan whole = planned(scenario, 80_GiB).memory.stages.at(0);
  scenario.memory.optimizer_states = OptimizerStates::on_nvme;
  scenario.cluster.node.nvme_count = 2;
  scenario.cluster.node.gpu_count = 4;  // half a drive each: 2 and 1 GB/s
  scenario.cluster.node.nvme_read_bandwidth = BytesPerSecond(4e9);
  scenario.cluster.node.nvme_write_bandwidth = BytesPerSecond(2e9);
  scenario.cluster.node.nvme_latency = Seconds(0);
  const PlannedSteps steps = planned(scenario, whole.static_bytes);
  ASSERT_TRUE(steps.memory.feasible()) << steps.memory.stages[0].infeasible;
  const Bytes states = whole.static_bytes - steps.memory.stages[0].static_bytes;
  double drives = 0;
  for (const ProgramOp& op : steps.planned.program.stages[0].ops)
    if (op.stream == StreamKind::host)
      drives += steps.planned.segment_of(0, op.segment).duration.value();
  const auto bytes = static_cast<double>(states.value());
  EXPECT_NEAR(drives, bytes / 2e9 + bytes / 1e9, 1e-9 * drives);
}

TEST(MemoryMeans, MicroBatchesAreSplitWhereWholeOnesCannotRun) {
  Scenario scenario = one_gpu("dgx-a100");
  const StageMemoryPlan tight = planned(scenario, budget_at(scenario, 0.01)).memory.stages.at(0);
  ASSERT_FALSE(tight.feasible);
  const Bytes budget = tight.lower_bound - 1_MiB;
  EXPECT_FALSE(planned(scenario, budget).memory.feasible());
  scenario.memory.split_batch = 2;
  const PlannedSteps steps = planned(scenario, budget);
  ASSERT_TRUE(steps.memory.feasible()) << steps.memory.stages[0].infeasible;
  EXPECT_EQ(steps.memory.split, 2);
  // Four micro-batches of two sequences became eight of one.
  EXPECT_EQ(steps.planned.program.stages[0].passes.size(),
            2 * steps.base.program.stages[0].passes.size());
}

TEST(MemoryMeans, APlanForShorterSequencesRunsOnLongerOnes) {
  Scenario scenario = one_gpu("dgx-a100");
  scenario.step.sequence_length = 768;
  const Bytes budget = budget_at(scenario, 0.7);
  const StageMemoryPlan known = planned(scenario, budget).memory.stages.at(0);
  scenario.step.sequence_length = 1024;
  scenario.memory.planned_sequence_length = 768;
  const PlannedSteps steps = planned(scenario, budget);
  const StageMemoryPlan& plan = steps.memory.stages.at(0);
  EXPECT_EQ(plan.chunks[0].schedule, known.chunks[0].schedule);
  EXPECT_GT(known.decisions.run_again, 0);
  EXPECT_GT(plan.planned_peak, budget);
  EXPECT_GT(steps.planned.program.hardware_flops, steps.base.program.hardware_flops);
}

}  // namespace
}  // namespace tessera
