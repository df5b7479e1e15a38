#include "sim/plan/memory/memory_plan.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/plan.h"
#include "sim/scenario/names.h"
#include "tests/workloads/models.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

/// GPT-2 with few layers on A100s, kernels by the roofline.
Scenario gpt(int tensor, int pipeline, const std::string& planner) {
  ModelSpec model = test::gpt2_large();
  model.layers = 24;
  Scenario scenario{.name = "gpt", .model = model, .cluster = {}, .step = {}};
  const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  scenario.cluster = load_cluster("dgx-a100", catalog);
  scenario.step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 2, 1024));
  scenario.step.layout = {.tensor = tensor, .pipeline = pipeline, .data = 1};
  scenario.step.global_batch = 2 * 4;
  scenario.predictor_form = PredictorForm::roofline;
  scenario.memory.planner = memory_planner_of(planner);
  scenario.memory.thorough = false;
  return scenario;
}

Bytes activations(const StageMemoryPlan& plan) {
  return plan.base_peak - plan.static_bytes;
}

Bytes share(Bytes bytes, double of) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value()) * of));
}

PlannedSteps planned_at(Scenario scenario, double share_of_activations) {
  scenario.memory.budget = 80_GiB;
  const PlannedSteps whole = plan_step_memory(scenario, PredictorWeights());
  Bytes budget;
  for (const StageMemoryPlan& plan : whole.memory.stages)
    budget = std::max(budget, plan.static_bytes + share(activations(plan), share_of_activations));
  scenario.memory.budget = budget;
  return plan_step_memory(scenario, PredictorWeights());
}

/// Kernels of a stage that do not run again.
std::int64_t first_runs(const TimedProgram& timed, int stage) {
  std::int64_t kernels = 0;
  for (const ProgramOp& op : timed.program.stages[static_cast<std::size_t>(stage)].ops) {
    if (op.kind != OpKind::kernels) continue;
    for (const KernelLaunch& launch : timed.program.segment(op.segment).kernels)
      kernels += launch.recomputed ? 0 : 1;
  }
  return kernels;
}

TEST(MemoryPlan, AStepThatFitsIsLeftAlone) {
  Scenario scenario = gpt(1, 1, "tessera");
  const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
  EXPECT_FALSE(steps.memory.stages.at(0).needed);
  EXPECT_EQ(steps.memory.added_time.value(), 0);
  EXPECT_EQ(steps.planned.program.stages[0].ops.size(), steps.base.program.stages[0].ops.size());
}

TEST(MemoryPlan, ABudgetAboveTheGpusMemoryIsThatMemory) {
  Scenario scenario = gpt(1, 1, "tessera");
  // 34 bytes for each of 24 x 1024 x 1280 numbers are 1 GiB a sequence, on a GPU of 79 GiB.
  scenario.step.micro_batch = scenario.step.global_batch = 90;
  const PlannedSteps given = plan_step_memory(scenario, PredictorWeights());
  ASSERT_TRUE(given.memory.stages.at(0).needed);
  ASSERT_TRUE(given.memory.feasible());
  scenario.memory.budget = 1000_GiB;
  const PlannedSteps wider = plan_step_memory(scenario, PredictorWeights());
  EXPECT_EQ(wider.memory.budget, given.memory.budget);
  EXPECT_EQ(wider.memory.added_time, given.memory.added_time);
}

TEST(MemoryPlan, TheGraphOfAStageHasTheProgramsPeak) {
  Scenario scenario = gpt(1, 1, "none");
  const PlannedSteps steps = planned_at(scenario, 0.99);
  const StageMemoryPlan& plan = steps.memory.stages.at(0);
  // Groups allocate what they make at once, so the graph may count a little more.
  const Bytes peak = steps.memory.budget + plan.missing;
  EXPECT_FALSE(plan.feasible);
  EXPECT_GT(plan.missing, Bytes(0));
  EXPECT_LT(static_cast<double>(peak.value()), 1.05 * static_cast<double>(plan.base_peak.value()));
}

TEST(MemoryPlan, KeepsWithinTheBudgetWhateverThePlannerAndTheLayout) {
  int feasible = 0;
  std::string refusals;
  for (const auto& [tensor, pipeline] : {std::pair{1, 1}, {2, 1}, {1, 4}, {2, 2}}) {
    for (const std::string planner : {"tessera", "megatron_uniform"}) {
      const PlannedSteps steps = planned_at(gpt(tensor, pipeline, planner), 0.8);
      for (const StageMemoryPlan& plan : steps.memory.stages) {
        if (!plan.feasible) refusals += planner + ", " + plan.infeasible + "\n";
      }
      if (!steps.memory.feasible()) continue;  // the loss alone may need more
      ++feasible;
      for (const StageMemoryPlan& plan : steps.memory.stages) {
        EXPECT_LE(plan.planned_peak, steps.memory.budget);
        if (!plan.needed) continue;
        EXPECT_GT(plan.base_peak, steps.memory.budget);
        EXPECT_GE(plan.planned_time, plan.base_time);
        EXPECT_LE(plan.lower_bound, plan.planned_peak) << planner << ", stage " << plan.stage;
      }
    }
  }
  EXPECT_GE(feasible, 4) << refusals;
}

TEST(MemoryPlan, EveryOperatorOfTheStepStillRuns) {
  const PlannedSteps steps = planned_at(gpt(1, 2, "tessera"), 0.5);
  for (int stage = 0; stage < 2; ++stage)
    EXPECT_EQ(first_runs(steps.planned, stage), first_runs(steps.base, stage));
  EXPECT_EQ(steps.planned.program.model_flops, steps.base.program.model_flops);
  EXPECT_GE(steps.planned.program.hardware_flops, steps.base.program.hardware_flops);
}

/// A schedule or sharding that a plan can meet.
struct Kind {
  const char* name;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int pipeline = 1, virtual_stages = 1, data = 1;
  bool shards_parameters = false;
  int experts = 0;  ///< whole ones, over the replicas and tensor-parallel ranks
};

Scenario gpt_of(const Kind& kind, const std::string& planner) {
  Scenario scenario = gpt(1, kind.pipeline, planner);
  scenario.model.layers = 8;
  scenario.model.vocab = 2048;  // the loss is no plan's to shrink
  scenario.step.schedule = kind.schedule;
  scenario.step.layout.virtual_stages = kind.virtual_stages;
  scenario.step.layout.data = kind.data;
  if (kind.shards_parameters) {
    scenario.step =
        test::in(Precision::bf16, test::single_gpu(test::fsdp(), StepMode::training, 8, 1024));
    scenario.step.layout.data = scenario.step.layout.shard = kind.data;
    scenario.step.data_parallel = scenario.step.framework.data_parallel;
  }
  if (kind.experts > 0) {
    scenario.model.experts = kind.experts;
    scenario.model.experts_per_token = 2;
    scenario.step.layout = {.tensor = 2, .data = kind.data, .expert_tensor = 1};
    scenario.step.layout.shard = kind.data;
    scenario.step.layout.sequence_parallel = true;
    scenario.step.micro_batch = 16;
    scenario.step.data_parallel.sharding = Sharding::parameters;
  }
  scenario.step.global_batch = scenario.step.micro_batch * 8 * kind.data;
  return scenario;
}

class PlannedKinds : public testing::TestWithParam<Kind> {};

TEST_P(PlannedKinds, KeepWithinTheBudgetAndRunEveryOperator) {
  for (const char* planner : {"megatron_uniform", "belady"}) {
    const PlannedSteps steps = planned_at(gpt_of(GetParam(), planner), 0.8);
    if (!steps.memory.feasible() && planner != std::string("belady")) continue;
    ASSERT_TRUE(steps.memory.feasible()) << steps.memory.stages.front().infeasible;
    int needed = 0;
    for (const StageMemoryPlan& plan : steps.memory.stages) {
      EXPECT_LE(plan.planned_peak, steps.memory.budget) << plan.stage;
      needed += plan.needed ? 1 : 0;
      const auto stage = static_cast<std::size_t>(plan.stage);
      EXPECT_EQ(first_runs(steps.planned, plan.stage), first_runs(steps.base, plan.stage));
      EXPECT_EQ(steps.planned.program.stages[stage].passes.size(),
                steps.base.program.stages[stage].passes.size());
    }
    EXPECT_GT(needed, 0);
  }
}

/// Of each collective that sums gradients, in order: kernels of backward passes submitted ahead of
/// it that do not run again.
std::vector<std::int64_t> kernels_ahead_of_sums(const TimedProgram& timed) {
  std::vector<std::int64_t> ahead;
  std::int64_t kernels = 0;
  for (const ProgramOp& op : timed.program.stages[0].ops) {
    if (op.kind == OpKind::reduce_scatter && op.phase == Phase::gradient_reduction)
      ahead.push_back(kernels);
    if (op.kind != OpKind::kernels || op.stream != StreamKind::compute) continue;
    if (op.phase != Phase::backward) continue;
    for (const KernelLaunch& launch : timed.program.segment(op.segment).kernels)
      kernels += launch.recomputed ? 0 : 1;
  }
  return ahead;
}

/// What is summed has to be there: reductions of a layer come behind its last kernels, however
/// many segments a plan cuts the layer into.
TEST(MemoryPlan, KnowsWhatRunsBesideTheLayers) {
  const PlannedSteps steps =
      planned_at(gpt_of({.name = "fsdp", .data = 4, .shards_parameters = true}, "tessera"), 0.7);
  const ChunkMemoryPlan& chunk = steps.memory.stages.at(0).chunks.at(0);
  int gathers = 0, awaited = 0;
  for (const StageTransfer& transfer : chunk.ops.transfers) {
    gathers += transfer.op.collective == OpKind::all_gather ? 1 : 0;
    awaited += transfer.awaited >= 0 ? 1 : 0;
  }
  // Each of the eight layers ahead of both passes; what belongs to none stays from forward on.
  EXPECT_EQ(gathers, 2 * 8 + 1);
  EXPECT_EQ(awaited, gathers);
  const remat::Graph& graph = chunk.graph.graph;
  EXPECT_TRUE(graph.has_transfers());
  EXPECT_GT(graph.unplanned_time(), graph.base_time());
}

TEST(MemoryPlan, GradientsAreSummedBehindTheKernelsThatMakeThem) {
  const Scenario scenario =
      gpt_of({.name = "fsdp", .data = 4, .shards_parameters = true}, "tessera");
  const PlannedSteps steps = planned_at(scenario, 0.6);
  ASSERT_TRUE(steps.memory.feasible()) << steps.memory.stages.front().infeasible;
  const std::vector<std::int64_t> ahead = kernels_ahead_of_sums(steps.planned);
  EXPECT_EQ(ahead.size(),
            9 * 8);  // eight layers and what embedding and head share, of eight micro-batches
  EXPECT_EQ(ahead, kernels_ahead_of_sums(steps.base));
}

INSTANTIATE_TEST_SUITE_P(
    MemoryPlan, PlannedKinds,
    testing::Values(
        Kind{.name = "interleaved",
             .schedule = PipelineSchedule::interleaved_1f1b,
             .pipeline = 4,
             .virtual_stages = 2},
        Kind{.name = "zero_bubble_h1", .schedule = PipelineSchedule::zb_h1, .pipeline = 4},
        Kind{.name = "zero_bubble_h2", .schedule = PipelineSchedule::zb_h2, .pipeline = 4},
        Kind{.name = "dualpipe", .schedule = PipelineSchedule::dualpipe, .pipeline = 4},
        Kind{.name = "fsdp", .data = 4, .shards_parameters = true},
        Kind{.name = "sharded_experts", .data = 4, .experts = 4}),
    [](const testing::TestParamInfo<Kind>& kind) { return std::string(kind.param.name); });

TEST(MemoryPlan, OptimizerStatesLeaveAndReturnForTheUpdate) {
  Scenario scenario = gpt(1, 2, "optimizer_offload");
  scenario.memory.budget = 80_GiB;
  const PlannedSteps whole = plan_step_memory(scenario, PredictorWeights());
  scenario.memory.budget = whole.memory.stages[0].base_peak - 1_GiB;
  const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
  const StageMemoryPlan& plan = steps.memory.stages[0];
  ASSERT_TRUE(steps.memory.feasible()) << plan.infeasible;
  EXPECT_LE(plan.planned_peak, steps.memory.budget);
  EXPECT_EQ(plan.static_bytes + plan.host_bytes, whole.memory.stages[0].static_bytes);
  EXPECT_GT(steps.memory.added_time, Seconds(0));
  Bytes in, out;
  for (const ProgramOp& op : steps.planned.program.stages[0].ops) {
    if (op.kind == OpKind::copy_in) in += op.bytes;
    if (op.kind == OpKind::copy_out) out += op.bytes;
  }
  EXPECT_EQ(in, plan.host_bytes);
  EXPECT_EQ(out, plan.host_bytes);
  scenario.memory.swap = false;
  EXPECT_THROW(plan_step_memory(scenario, PredictorWeights()), InputError);
}

TEST(MemoryPlan, TheCpuUpdatesAtTheBandwidthOfItsMemory) {
  Scenario scenario = gpt(1, 2, "cpu_optimizer");
  scenario.cluster.node.sockets = 2;
  scenario.cluster.node.gpu_count = 8;
  scenario.cluster.node.host_memory_bandwidth = BytesPerSecond(200e9);  // 50 GB/s for each GPU
  scenario.memory.budget = 80_GiB;
  const PlannedSteps whole = plan_step_memory(scenario, PredictorWeights());
  scenario.memory.budget = whole.memory.stages[0].base_peak - 1_GiB;
  const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
  const StageMemoryPlan& plan = steps.memory.stages[0];
  ASSERT_TRUE(steps.memory.feasible()) << plan.infeasible;
  const RankProgram& stage = steps.planned.program.stages[0];
  Bytes down, up;
  double cpu = 0;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind == OpKind::copy_out) down += op.bytes;
    if (op.kind == OpKind::copy_in) up += op.bytes;
    if (op.stream == StreamKind::host)
      cpu += steps.planned.segment_of(0, op.segment).duration.value();
  }
  const StepOptions& step = scenario.step;
  const auto parameters = static_cast<double>(stage.parameters);
  const auto bytes = [](Precision format) { return static_cast<double>(element_bytes(format)); };
  EXPECT_EQ(static_cast<double>(down.value()), bytes(step.formats.gradients) * parameters);
  EXPECT_EQ(static_cast<double>(up.value()), bytes(step.formats.parameters) * parameters);
  // Weight and both moments in fp32 are read and written, gradients read, 16-bit weights written.
  const double written = step.formats.master_weights ? bytes(step.formats.parameters) : 0;
  const double moved = (2 * 12 + bytes(step.formats.gradients) + written) * parameters;
  EXPECT_NEAR(cpu, moved / 50e9, 1e-9 * cpu);
  scenario.cluster.node.host_memory_bandwidth = BytesPerSecond(0);
  EXPECT_THROW(plan_step_memory(scenario, PredictorWeights()), InputError);
}

TEST(MemoryPlan, BelowTheLowerBoundItNamesTheOperatorAndTheMissingBytes) {
  Scenario scenario = gpt(1, 1, "tessera");
  scenario.memory.budget = 2_GiB;  // less than the states alone
  const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
  const StageMemoryPlan& plan = steps.memory.stages.at(0);
  EXPECT_FALSE(steps.memory.feasible());
  EXPECT_GT(plan.missing, Bytes(0));
  EXPECT_NE(plan.infeasible.find("stage 0"), std::string::npos);
  EXPECT_NE(plan.infeasible.find("needs"), std::string::npos);
}

TEST(MemoryPlan, RefusesUnknownPlannersAndLayersOfOthers) {
  EXPECT_THROW(memory_planner_of("nobody"), InputError);
  Scenario scenario = gpt(1, 1, "tessera");
  scenario.memory.layers = 2;
  EXPECT_THROW(plan_step_memory(scenario, PredictorWeights()), InputError);
}

TEST(MemoryPlan, TakesThePlaceOfRecomputation) {
  Scenario scenario = gpt(1, 1, "tessera");
  const PlannedSteps alone = planned_at(scenario, 0.6);
  scenario.step.recompute = Recompute::full;
  const PlannedSteps instead = planned_at(scenario, 0.6);
  EXPECT_EQ(instead.memory.budget, alone.memory.budget);
  EXPECT_EQ(instead.memory.stages[0].planned_time, alone.memory.stages[0].planned_time);
}

TEST(MemoryPlan, ANumberOfLayersRunsAgainWhetherTheStepFitsOrNot) {
  Scenario scenario = gpt(1, 1, "megatron_block");
  scenario.memory.budget = 80_GiB;
  Bytes before = Bytes(std::int64_t{80} << 30);
  for (int layers = 1; layers <= 3; ++layers) {
    scenario.memory.layers = layers;
    const PlannedSteps steps = plan_step_memory(scenario, PredictorWeights());
    ASSERT_TRUE(steps.memory.feasible());
    EXPECT_EQ(steps.memory.stages[0].note, std::to_string(layers) + " layers");
    EXPECT_GT(steps.memory.stages[0].recompute, Seconds(0));
    EXPECT_LT(steps.memory.stages[0].planned_peak, before);
    before = steps.memory.stages[0].planned_peak;
  }
}

}  // namespace
}  // namespace tessera
