// Muon against counts by hand.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/parallel/update/muon_update.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kHidden = 256, kFfn = 512, kLayers = 3, kVocab = 1024;

/// Four matrices a layer: queries, keys and values [768, 256], output [256, 256], gate and up
/// [1024, 256], down [256, 512]; two norms.
ModelSpec small_llama() {
  ModelSpec model = test::llama2_7b();
  model.layers = kLayers;
  model.hidden = kHidden;
  model.heads = model.kv_heads = 4;
  model.head_dim = 64;
  model.ffn = kFfn;
  model.vocab = kVocab;
  return model;
}
constexpr std::int64_t kMatrices = kHidden * (4 * kHidden + 3 * kFfn);  // of a layer
constexpr std::int64_t kOthers = 2 * kVocab * kHidden + (2 * kLayers + 1) * kHidden;

StepOptions muon(int data = 1, Sharding sharding = Sharding::none) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 64));
  step.optimizer = OptimizerKind::muon;
  step.layout.data = data;
  step.global_batch = data;
  step.data_parallel.sharding = sharding;
  return step;
}

double flops_of(const std::vector<GraphOp>& ops) {
  double sum = 0;
  for (const GraphOp& op : ops)
    if (op.kernel.kind == KernelKind::gemm) sum += op.kernel.flops.value();
  return sum;
}

/// Runs of a segment that makes a matrix of m x n orthogonal.
std::int64_t runs(const Program& program, std::int64_t m, std::int64_t n) {
  return std::ranges::count_if(program.stages[0].ops, [&](const ProgramOp& op) {
    if (op.kind != OpKind::kernels) return false;
    const auto& kernels = program.segments[static_cast<std::size_t>(op.segment.index())].kernels;
    return !kernels.empty() && kernels.front().name == "muon.norm" &&
           kernels.front().kernel.rows == m && kernels.front().kernel.cols == n;
  });
}

std::int64_t gathered(const Program& program, GroupKind group) {
  std::int64_t bytes = 0;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == OpKind::all_gather && op.group == group && op.phase == Phase::optimizer)
      bytes += op.bytes.value();
  return bytes;
}

TEST(Muon, FiveStepsOfThreeProductsWithTheShorterSideFirst) {
  const double m = 96, n = 640;
  const double flops = 5 * (2 * m * m * n + 2 * m * m * m + 2 * m * n * m);
  for (const ParameterMatrices& shape : {ParameterMatrices{96, 640, 1}, {640, 96, 7}})
    EXPECT_DOUBLE_EQ(flops_of(orthogonalizing(shape)), flops);
  // in bf16: X twice in, A out; A twice and once more in, its combination out; it and X twice in
  const auto ops = orthogonalizing({96, 640, 1});
  ASSERT_EQ(ops.size(), 2 + 3 * 5);
  EXPECT_EQ(ops[2].kernel.bytes().value(), 2 * (2 * 96 * 640 + 96 * 96));
  EXPECT_EQ(ops[3].kernel.bytes().value(), 2 * 4 * 96 * 96);
  EXPECT_EQ(ops[4].kernel.bytes().value(), 2 * (96 * 96 + 3 * 96 * 640));
}

TEST(Muon, RunsForEveryMatrixOfTheLayersAndForNoEmbedding) {
  const Program program = build_program(small_llama(), muon());
  EXPECT_EQ(runs(program, 256, 768), kLayers);
  EXPECT_EQ(runs(program, 256, 256), kLayers);
  EXPECT_EQ(runs(program, 256, 1024), kLayers);
  EXPECT_EQ(runs(program, 256, 512), kLayers);
  EXPECT_EQ(program.parameters, kLayers * kMatrices + kOthers);
}

TEST(Muon, KeepsOneMomentOfMatricesAndTwoOfTheRest) {
  const Program program = build_program(small_llama(), muon());
  // a master copy and a moment of all, a second moment of embedding, head and norms, in fp32
  EXPECT_EQ(program.stages[0].static_parts[MemoryCategory::optimizer].value(),
            8 * (kLayers * kMatrices + kOthers) + 4 * kOthers);
}

TEST(Muon, ShardsDivideTheMatricesAndGatherTheirMomentum) {
  const Program program = build_program(small_llama(), muon(2, Sharding::optimizer));
  EXPECT_EQ(runs(program, 256, 768), 2);  // the larger half of three
  // Momentum of matrices, then all weights, both in bf16.
  EXPECT_EQ(gathered(program, GroupKind::shard),
            2 * kLayers * kMatrices + 2 * (kLayers * kMatrices + kOthers));
  const Program whole = build_program(small_llama(), muon(2));
  EXPECT_EQ(runs(whole, 256, 768), kLayers);
  EXPECT_EQ(gathered(whole, GroupKind::shard), 0);
}

TEST(Muon, WorksOnThePartsOfTensorParallelRanks) {
  StepOptions step = muon();
  step.layout.tensor = 2;
  const Program program = build_program(small_llama(), step);
  EXPECT_EQ(runs(program, 256, 384), kLayers);
  EXPECT_EQ(runs(program, 128, 256), kLayers);
}

TEST(Muon, MakesEachExpertOfARankOrthogonal) {
  ModelSpec model = small_llama();
  model.experts = 8;
  model.experts_per_token = 2;
  StepOptions step = muon(4, Sharding::optimizer);
  step.layout.expert = 4;
  const Program program = build_program(model, step);
  // Two experts of eight on each rank, which no replica shares; down and the router's [8, 256].
  EXPECT_EQ(runs(program, 256, 512), 2 * kLayers);
  EXPECT_EQ(runs(program, 8, 256), 1);
  EXPECT_EQ(gathered(program, GroupKind::expert_data), 0);
}

TEST(Muon, ItsProductsAreNotTheModels) {
  StepOptions adam = muon();
  adam.optimizer = OptimizerKind::adam;
  EXPECT_DOUBLE_EQ(build_program(small_llama(), muon()).hardware_flops.value(),
                   build_program(small_llama(), adam).hardware_flops.value());
}

/// Of two replicas. 21 tensors by size go to 0, 1, 1, 0, 0, 1, 1, 0 and so on: seven norms, three
/// each of output [256, 256], down [256, 512], queries, keys and values [768, 256], gate and up
/// [1024, 256], then embedding and head, as large as these. The first one gets 2, 2, 1 and 1 of the
/// matrices, embedding, head and three norms; the second one 1, 1, 2 and 2 and four norms.
StepOptions dealt() {
  StepOptions step = muon(2);
  step.optimizer = OptimizerKind::dist_muon;
  return step;
}

TEST(DistMuon, RunsTheMatricesOfTheReplicaWithMostProducts) {
  const Program program = build_program(small_llama(), dealt());
  EXPECT_EQ(runs(program, 256, 256), 1);
  EXPECT_EQ(runs(program, 256, 512), 1);
  EXPECT_EQ(runs(program, 256, 768), 2);
  EXPECT_EQ(runs(program, 256, 1024), 2);
}

TEST(DistMuon, CountsTheStatesOfTheReplicaThatKeepsMost) {
  const RankProgram rank = build_program(small_llama(), dealt()).stages[0];
  const std::int64_t matrices = 2 * 256 * 256 + 2 * 256 * 512 + 768 * 256 + 1024 * 256;
  const std::int64_t others = 2 * kVocab * kHidden + 3 * kHidden;
  // a master copy and a moment of all, a second moment of what is Adam's
  EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(),
            8 * (matrices + others) + 4 * others);
  EXPECT_EQ(rank.static_parts[MemoryCategory::gradients].value(), 4 * rank.parameters);
}

TEST(DistMuon, SumsWholeGradientsAndGathersAllWeights) {
  const Program program = build_program(small_llama(), dealt());
  const std::int64_t all = kLayers * kMatrices + kOthers;
  EXPECT_EQ(gathered(program, GroupKind::data), 2 * all);
  EXPECT_EQ(gathered(program, GroupKind::shard), 0);
  std::int64_t summed = 0;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == OpKind::all_reduce && op.group == GroupKind::data && op.bytes > Bytes(4))
      summed += op.bytes.value();
  EXPECT_EQ(summed, 4 * all);
}

TEST(DistMuon, DealsExpertsToTheReplicasThatHoldThem) {
  ModelSpec model = small_llama();
  model.experts = 8;
  model.experts_per_token = 2;
  StepOptions step = muon(4);
  step.optimizer = OptimizerKind::dist_muon;
  step.layout.expert = 2;
  const Program program = build_program(model, step);
  // Four experts of each of three layers on each rank, which two replicas hold: six of twelve.
  EXPECT_EQ(runs(program, 256, 512), 6);
  EXPECT_EQ(runs(program, 256, 1024), 6);
  EXPECT_EQ(gathered(program, GroupKind::expert_data), 2 * kLayers * 4 * 3 * kHidden * kFfn);
}

TEST(DistMuon, OfOneReplicaIsMuon) {
  StepOptions alone = muon();
  alone.optimizer = OptimizerKind::dist_muon;
  const Program dealt_alone = build_program(small_llama(), alone);
  const Program usual = build_program(small_llama(), muon());
  EXPECT_EQ(dealt_alone.stages[0].static_memory, usual.stages[0].static_memory);
  EXPECT_EQ(runs(dealt_alone, 256, 768), runs(usual, 256, 768));
  EXPECT_EQ(gathered(dealt_alone, GroupKind::data), 0);
}

TEST(DistMuon, IsRefusedWhereStatesAreDividedOtherwise) {
  EXPECT_THAT(test::refusal(small_llama(), dealt()), IsEmpty());
  StepOptions divided = dealt();
  divided.data_parallel.sharding = Sharding::optimizer;
  EXPECT_THAT(test::refusal(small_llama(), divided), HasSubstr("dist_muon deals whole tensors"));
}

TEST(Muon, IsRefusedWhereGradientsAreDivided) {
  EXPECT_THAT(test::refusal(small_llama(), muon(2, Sharding::optimizer)), IsEmpty());
  EXPECT_THAT(test::refusal(small_llama(), muon(2, Sharding::gradients)),
              HasSubstr("muon is simulated where replicas hold whole gradients"));
  ModelSpec model = small_llama();
  model.mtp_layers = 1;
  EXPECT_THAT(test::refusal(model, muon()), HasSubstr("with model.mtp_layers"));
}

}  // namespace
}  // namespace tessera
