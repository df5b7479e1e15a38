#include "workloads/program/program.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/families/vocabulary.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

StepOptions megatron(int tensor, int pipeline, int data, int micro_batches) {
  StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 1, 512);
  step.layout = {tensor, pipeline, data};
  step.global_batch = static_cast<std::int64_t>(data) * micro_batches;
  return step;
}

ModelSpec small_gpt() {
  ModelSpec model = test::gpt2_large();
  model.layers = 8;
  model.hidden = 512;
  model.heads = model.kv_heads = 8;
  model.ffn = 2048;
  return model;
}

std::vector<ProgramOp> ops_of_kind(const RankProgram& stage, OpKind kind) {
  std::vector<ProgramOp> result;
  std::copy_if(stage.ops.begin(), stage.ops.end(), std::back_inserter(result),
               [&](const ProgramOp& op) { return op.kind == kind; });
  return result;
}

Bytes net_memory(const Program& program, const RankProgram& stage) {
  Bytes net;
  for (const ProgramOp& op : ops_of_kind(stage, OpKind::kernels)) {
    net += program.segment(op.segment).net_memory;
  }
  return net;
}

/// GEMM FLOPs of Megatron's GPT per sequence, forward and twice that backward:
/// 24 s h^2 + 4 s^2 h per layer, 2 s h V for the head.
double closed_form_flops(const ModelSpec& model, double s, int tensor) {
  const auto h = static_cast<double>(model.hidden);
  const auto vocab = static_cast<double>(padded_vocabulary(model.vocab, tensor));
  const double layers = static_cast<double>(model.layers) * (24 * s * h * h + 4 * s * s * h);
  return 3 * (layers + 2 * s * h * vocab);
}

TEST(Program, CountsTheFlopsOfTheClosedForm) {
  const ModelSpec model = small_gpt();
  for (const int tensor : {1, 2, 4}) {
    const Program program = build_program(model, megatron(tensor, 2, 2, 3));
    const double sequences = 6;
    EXPECT_DOUBLE_EQ(program.model_flops.value(),
                     sequences * closed_form_flops(model, 512, tensor));
  }
}

TEST(Program, FlopsAreSixTimesParametersAndTokensPlusAttention) {
  const ModelSpec model = test::gpt2_large();
  StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 4, 1024);
  const double tokens = 4 * 1024;
  const double attention = 12.0 * 36 * 1280 * 1024 * tokens;  // 3 * 4 b s^2 h per layer
  const double expected = 6.0 * static_cast<double>(parameter_count(model)) * tokens + attention;
  // biases, norms and positions are parameters without GEMM FLOPs, padding the other way round
  EXPECT_NEAR(build_program(model, step).model_flops.value() / expected, 1, 0.003);
}

TEST(Program, TensorParallelAllReducesFourTimesPerLayerAndTwice) {
  const int micro_batches = 3;
  const Program program = build_program(small_gpt(), megatron(4, 1, 1, micro_batches));
  const Bytes hidden(1 * 512 * 512 * 4);
  const Bytes per_token(512 * 4);
  std::map<Bytes, int> count;
  for (const ProgramOp& op : ops_of_kind(program.stages[0], OpKind::all_reduce)) {
    EXPECT_EQ(op.group, GroupKind::tensor);
    ++count[op.bytes];
  }
  EXPECT_EQ(count[hidden], micro_batches * (4 * 8 + 2));
  EXPECT_EQ(count[per_token], micro_batches * 3);  // vocabulary-parallel cross entropy
  EXPECT_EQ(count[Bytes(4)], 1);                   // gradient norm
  EXPECT_EQ(count.size(), 3u);
}

TEST(Program, DataGradientAllReduceOverlapsTheWeightGradient) {
  const Program program = build_program(small_gpt(), megatron(2, 1, 1, 1));
  const auto& ops = program.stages[0].ops;
  const auto is_overlapped = [&](const ProgramOp& op) {
    const std::size_t position = static_cast<std::size_t>(&op - ops.data());
    if (op.kind != OpKind::all_reduce || op.phase != Phase::backward) return false;
    const auto waited = static_cast<std::int32_t>(position);
    return ops[position + 1].waits[0] != waited && ops[position + 2].waits[0] == waited;
  };
  EXPECT_EQ(std::count_if(ops.begin(), ops.end(), is_overlapped), 2 * 8 + 1);
}

TEST(Program, DataParallelReducesTheWholeGradientOnceAfterBackward) {
  const Program program = build_program(test::gpt2_large(), megatron(1, 1, 4, 1));
  const auto reductions = ops_of_kind(program.stages[0], OpKind::all_reduce);
  ASSERT_EQ(reductions.size(), 1u);
  // 774'030'080 and the rows 50257..50303 that pad the vocabulary, 4 bytes each
  EXPECT_EQ(reductions[0].bytes.value(), 4 * (774'030'080LL + 47 * 1280));
  EXPECT_EQ(reductions[0].group, GroupKind::data);
  EXPECT_EQ(reductions[0].phase, Phase::gradient_reduction);
}

TEST(Program, StepTrafficOutsideForwardAndBackwardIsFiftyBytesPerParameter) {
  // zero 4 + average 8 + norm 4 + clip 8 + Adam 28; the 12 of accumulation belong to backward
  const Program program = build_program(test::gpt2_large(), megatron(1, 1, 1, 1));
  Bytes moved;
  for (const ProgramOp& op : ops_of_kind(program.stages[0], OpKind::kernels)) {
    if (op.phase != Phase::optimizer && op.phase != Phase::gradient_reduction) continue;
    for (const KernelLaunch& launch : program.segment(op.segment).kernels) {
      moved += launch.kernel.bytes();
    }
  }
  EXPECT_EQ(moved.value(), 52 * program.stages[0].parameters);
}

using Message = std::tuple<int, int, int, std::int64_t>;  // from, to, tag, bytes

class PipelineProgram : public ::testing::TestWithParam<PipelineSchedule> {
 protected:
  StepOptions scheduled(int tensor, int stages, int micro_batches) const {
    StepOptions step = megatron(tensor, stages, 1, micro_batches);
    step.schedule = GetParam();
    if (GetParam() == PipelineSchedule::interleaved_1f1b) step.layout.virtual_stages = 2;
    return step;
  }
};

TEST_P(PipelineProgram, EverySendHasItsReceive) {
  for (const int stages : {2, 4}) {
    for (const int micro_batches : {8, 12}) {
      const StepOptions step = scheduled(1, stages, micro_batches);
      const Program program = build_program(small_gpt(), step);
      std::vector<Message> sent;
      std::vector<Message> received;
      for (const RankProgram& stage : program.stages) {
        for (const ProgramOp& op : ops_of_kind(stage, OpKind::send)) {
          sent.emplace_back(stage.stage, op.peer_stage, op.tag, op.bytes.value());
        }
        for (const ProgramOp& op : ops_of_kind(stage, OpKind::recv)) {
          received.emplace_back(op.peer_stage, stage.stage, op.tag, op.bytes.value());
        }
      }
      std::sort(sent.begin(), sent.end());
      std::sort(received.begin(), received.end());
      EXPECT_EQ(sent, received);
      EXPECT_EQ(std::unique(sent.begin(), sent.end()), sent.end());
      const int boundaries = step.layout.virtual_stages * stages - 1;
      const int joins = GetParam() == PipelineSchedule::dualpipe ? stages : 0;  // of gradients
      EXPECT_EQ(sent.size(), static_cast<std::size_t>(2 * boundaries * micro_batches + joins));
    }
  }
}

TEST_P(PipelineProgram, FreesWhatItSaved) {
  const Program program = build_program(small_gpt(), scheduled(2, 4, 8));
  for (const RankProgram& stage : program.stages) {
    EXPECT_EQ(net_memory(program, stage).value(), 0) << "stage " << stage.stage;
  }
}

TEST_P(PipelineProgram, OpsWaitOnlyForEarlierOps) {
  for (const RankProgram& stage : build_program(small_gpt(), scheduled(2, 4, 8)).stages) {
    for (std::size_t i = 0; i < stage.ops.size(); ++i) {
      for (const std::int32_t wait : stage.ops[i].waits) {
        EXPECT_LT(wait, static_cast<std::int32_t>(i));
      }
    }
  }
}

TEST_P(PipelineProgram, RunsTheWorkOfTheModelOnce) {
  const Program program = build_program(small_gpt(), scheduled(2, 4, 8));
  EXPECT_DOUBLE_EQ(program.model_flops.value(), 8 * closed_form_flops(small_gpt(), 512, 2));
}

INSTANTIATE_TEST_SUITE_P(Schedules, PipelineProgram,
                         ::testing::Values(PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b,
                                           PipelineSchedule::interleaved_1f1b,
                                           PipelineSchedule::zb_h1, PipelineSchedule::zb_h2,
                                           PipelineSchedule::dualpipe));

TEST(PipelineProgram, DualPipesCopiesExchangeTheShardsThatTheirRanksUpdate) {
  StepOptions step = megatron(1, 4, 2, 8);
  step.schedule = PipelineSchedule::dualpipe;
  const auto joins = [&step] {
    std::vector<std::int64_t> bytes;
    const Program program = build_program(small_gpt(), step);
    for (const RankProgram& stage : program.stages) {
      for (const ProgramOp& op : ops_of_kind(stage, OpKind::send)) {
        if (op.phase == Phase::gradient_reduction) bytes.push_back(op.bytes.value());
      }
      EXPECT_EQ(ops_of_kind(stage, OpKind::reduce_scatter).size(),
                step.data_parallel.sharding == Sharding::optimizer ? 1U : 0U);
    }
    return bytes;
  };
  const std::vector<std::int64_t> whole = joins();
  step.data_parallel.sharding = Sharding::optimizer;
  const std::vector<std::int64_t> shards = joins();
  ASSERT_EQ(whole.size(), 4U);
  ASSERT_EQ(shards.size(), 4U);
  for (std::size_t stage = 0; stage < 4; ++stage) EXPECT_EQ(2 * shards[stage], whole[stage]);
  step.data_parallel.sharding = Sharding::gradients;
  EXPECT_NE(test::refusal(small_gpt(), step), "");
}

TEST(PipelineProgram, StagesTogetherHoldTheModelAndASecondTable) {
  const Program program = build_program(small_gpt(), megatron(1, 4, 1, 1));
  const std::int64_t table = padded_vocabulary(50257, 1) * 512;
  const std::int64_t padding = (padded_vocabulary(50257, 1) - 50257) * 512;
  std::int64_t held = 0;
  for (const RankProgram& stage : program.stages) held += stage.parameters;
  EXPECT_EQ(held, parameter_count(small_gpt()) + table + padding);
  for (const int stage : {0, 3}) {
    const auto reductions =
        ops_of_kind(program.stages[static_cast<std::size_t>(stage)], OpKind::all_reduce);
    EXPECT_EQ(reductions[0].group, GroupKind::embedding);
    EXPECT_EQ(reductions[0].bytes.value(), 4 * table);
  }
}

TEST(PipelineProgram, ParametersOfGroupedHeadsAndOfGatesAreCounted) {
  ModelSpec model = small_gpt();
  model.kv_heads = model.heads / 2;
  model.activation = Activation::swiglu;
  const Program program = build_program(model, megatron(1, 1, 1, 1));
  const std::int64_t padding = (padded_vocabulary(50257, 1) - 50257) * 512;
  EXPECT_EQ(program.stages.front().parameters, parameter_count(model) + padding);
}

TEST(Program, StagesAndLayersShareSegments) {
  const Program program = build_program(small_gpt(), megatron(1, 4, 1, 2));
  // layers in the middle of a stage run the same two segments on every stage
  EXPECT_LT(program.segments.size(), 40u);
}

class EveryFamily : public ::testing::TestWithParam<StepMode> {};

TEST_P(EveryFamily, ReturnsToTheMemoryItStartedWith) {
  ModelSpec grouped = test::llama2_7b();
  grouped.kv_heads = 8;
  for (const ModelSpec& model :
       {test::gpt2_large(), test::opt_1_3b(), test::bert_large(), grouped, test::switch_xl4()}) {
    StepOptions step = test::single_gpu(test::hf_eager(), GetParam(), 2, 512);
    for (const KernelMode kernels : {KernelMode::eager, KernelMode::fused}) {
      step.kernels = kernels;
      const Program program = build_program(model, step);
      EXPECT_EQ(net_memory(program, program.stages[0]).value(), 0) << model.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryFamily,
                         ::testing::Values(StepMode::training, StepMode::forward_backward,
                                           StepMode::inference));

TEST(Program, BackwardCostsTwiceTheForwardFlops) {
  for (const ModelSpec& model :
       {test::gpt2_large(), test::opt_1_3b(), test::bert_large(), test::llama2_7b()}) {
    const Program program = build_program(
        model, test::single_gpu(test::hf_eager(), StepMode::forward_backward, 2, 512));
    std::map<Phase, double> flops;
    for (const ProgramOp& op : program.stages[0].ops) {
      for (const KernelLaunch& launch : program.segment(op.segment).kernels) {
        if (launch.kernel.k > 0) flops[op.phase] += launch.kernel.flops.value();
      }
    }
    EXPECT_DOUBLE_EQ(flops[Phase::backward], 2 * flops[Phase::forward]) << model.name;
  }
}

TEST(Program, OnlyTheFirstMicroBatchStoresGradientsInHuggingFaceTraining) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 512);
  step.global_batch = 3;
  const Program program = build_program(test::gpt2_large(), step);
  std::map<int, std::size_t> kernels;
  for (const ProgramOp& op : program.stages[0].ops) {
    if (op.phase == Phase::backward && op.layer == 7) {
      kernels[op.micro_batch] = program.segment(op.segment).kernels.size();
    }
  }
  EXPECT_EQ(kernels, (std::map<int, std::size_t>{{0, 44}, {1, 56}, {2, 56}}));
}

TEST(Program, SwitchTransformerWaitsForTheGpuOncePerIndex) {
  const Program program = build_program(
      test::switch_xl4(), test::single_gpu(test::hf_eager(), StepMode::inference, 1, 512));
  int syncs = 0;
  for (const ProgramOp& op : program.stages[0].ops) {
    syncs += program.segment(op.segment).host_sync ? 1 : 0;
  }
  EXPECT_EQ(syncs, 2 * 4 * 24);  // gather and scatter, 4 experts, 12 + 12 sparse layers
}

TEST(Program, ImpossibleCombinationsAreExplainedTogether) {
  StepOptions step = megatron(3, 5, 1, 1);
  step.precision = Precision::int8;
  step.sequence_length = 2048;
  const std::string text = test::refusal(small_gpt(), step);
  EXPECT_THAT(text,
              HasSubstr("parallelism.tensor = 3 does not divide heads = 8; use 1, 2, 4 or 8"));
  EXPECT_THAT(text, HasSubstr("parallelism.pipeline = 5 does not divide layers = 8"));
  EXPECT_THAT(text, HasSubstr("precision"));
  EXPECT_THAT(text, HasSubstr("2048 exceeds max_positions = 1024"));
}

TEST(Program, ProfilesRejectWhatTheyDoNotKnow) {
  EXPECT_THAT(test::refusal(test::bert_large(), megatron(1, 1, 1, 1)),
              HasSubstr("megatron-local trains GPT, BLOOM and Llama models only"));
  StepOptions split = megatron(2, 2, 1, 1);
  split.framework = test::hf_eager();
  const std::string text = test::refusal(small_gpt(), split);
  EXPECT_THAT(text, HasSubstr("parallelism.tensor"));
  EXPECT_THAT(text, HasSubstr("parallelism.pipeline"));
  ModelSpec placeless = test::bert_large();
  placeless.max_positions = placeless.token_types = 0;
  const std::string tables =
      test::refusal(placeless, test::single_gpu(test::hf_eager(), StepMode::training, 1, 128));
  EXPECT_THAT(tables, HasSubstr("model.max_positions: is 0; use a number above 0"));
  EXPECT_THAT(tables, HasSubstr("token_types: is 0; use a number above 0"));
  StepOptions uneven = megatron(1, 1, 2, 1);
  uneven.global_batch = 3;
  EXPECT_THAT(test::refusal(small_gpt(), uneven),
              HasSubstr("parallelism.data = 2 does not divide global_batch = 3"));
}

}  // namespace
}  // namespace tessera
