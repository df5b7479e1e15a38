#include "lab/validate/calibrate_steps.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/validate/runs/training_run_scenario.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "tests/hw/units/scratch.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera {
namespace {

using test::scenario_of;
using test::shipped_configs;
using test::trained;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGpu = "H200-SXM5-141GB";
constexpr const char* kColumns =
    "id,gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,ffn,vocab,seq_len,tp,pp,dp,"
    "zero_stage,micro_batch,global_batch,recompute,step_time_s\n";

TrainingRuns read(const std::string& rows, const char* gpu = kGpu) {
  const ScratchFolder folder;
  return read_timed_steps(folder.write("runs.csv", kColumns + rows), test::shipped_rules(), gpu);
}

std::string gpt_row(const std::string& framework, const std::string& sizes) {
  return "a,H200-SXM5-141GB,1," + framework + ",fp32,gpt2,gpt,12,768,12,3072,50257,1024,1,1,1,0," +
         sizes + "\n";
}
std::string bert_row(const std::string& sizes) {
  return "b,H200-SXM5-141GB,1,hf_eager,fp32,bert,bert,4,1024,16,4096,30522,512,1,1,1,0," + sizes +
         "\n";
}

/// `runs` with the step times that a GPU with this scalar would have shown.
TrainingRuns with_times(TrainingRuns runs, double log_scalar) {
  const GpuSpec gpu = load_gpu(kGpu, shipped_configs());
  const bool fp32 = runs.runs.front().precision == "fp32";
  GpuOverlay overlay = neutral_overlay(gpu, trained());
  overlay.rows = 1;  // fp32 kernels of a GPU known by steps in 16 bit stay as predicted
  overlay.tensor.rows = fp32 ? 0 : 1;
  const PredictorWeights truth =
      with_overlay(trained(), with_slower_compute(overlay, log_scalar, {fp32, !fp32}), gpu);
  for (TrainingRun& run : runs.runs) {
    const std::string answer = run_forked([&] {
      return std::to_string(simulate(plan_step(scenario_of(run), truth)).step_time.value() * 1e9);
    });
    run.step_time = Seconds(std::stod(answer) * 1e-9);
  }
  return runs;
}

StepCalibration calibrate(const TrainingRuns& runs) {
  return calibrate_from_steps(runs, scenario_of, load_gpu(kGpu, shipped_configs()), trained(), 2);
}

TEST(CalibrateSteps, RecoversAPlantedScalar) {
  const TrainingRuns rows = read(gpt_row("hf_eager", "4,4,none,1") +
                                 gpt_row("hf_compiled", "4,8,none,1") + bert_row("8,8,,1"));
  ASSERT_EQ(rows.runs.size(), 3u);
  for (const double planted : {0.30, -0.05}) {
    const StepCalibration found = calibrate(with_times(rows, planted));
    EXPECT_NEAR(std::exp(found.log_scalar - planted), 1, 1e-3);
    EXPECT_NEAR(found.ratio_after, 1, 1e-5);
    EXPECT_GT(std::abs(std::log(found.ratio_before)), 0.01);
    EXPECT_EQ(found.overlay.rows, 3);
    EXPECT_EQ(found.overlay.mode, OverlayMode::calibrated_steps);
  }
}

TEST(CalibrateSteps, StepsIn16BitCorrectTensorCoresAlone) {
  const std::string row =
      "a,H200-SXM5-141GB,1,fsdp,bf16,gpt2,gpt,4,2048,16,8192,50304,1024,1,1,1,"
      "0,4,8,none,1\n";
  const StepCalibration found = calibrate(with_times(read(row), 0.25));
  EXPECT_NEAR(found.log_scalar, 0.25, 1e-3);
  EXPECT_NEAR(found.overlay.tensor.compute, 0.25, 1e-3);
  EXPECT_NEAR(found.overlay.tensor.attention, 0.25, 1e-3);
  EXPECT_EQ(found.overlay.tensor.rows, 1);
  EXPECT_EQ(found.overlay.precision, Precision::bf16);
  EXPECT_EQ(found.overlay.gemm_slowdown,
            neutral_overlay(load_gpu(kGpu, shipped_configs()), trained()).gemm_slowdown);
}

TEST(CalibrateSteps, OneScalarStretchesTheArithmeticAlone) {
  const GpuSpec gpu = load_gpu(kGpu, shipped_configs());
  const GpuOverlay before = neutral_overlay(gpu, trained());
  const GpuOverlay after = with_slower_compute(before, std::log(2.0), {.fp32 = true});
  EXPECT_DOUBLE_EQ(after.gemm_slowdown - before.gemm_slowdown, std::log(2.0));
  EXPECT_DOUBLE_EQ(after.batched_slowdown - before.batched_slowdown, std::log(2.0));
  EXPECT_DOUBLE_EQ(after.sustained_flops, before.sustained_flops / 2);
  EXPECT_EQ(after.bandwidth_slowdown, before.bandwidth_slowdown);
  EXPECT_EQ(after.tensor.compute, 0);
}

TEST(CalibrateSteps, TimesThatArithmeticCannotExplainAreRefused) {
  const TrainingRuns rows = read(gpt_row("hf_eager", "4,4,none,0.0001"));
  try {
    calibrate(rows);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no scalar on the arithmetic explains these steps"));
  }
}

TEST(TrainingRuns, RowsThatAreNotSimulatedAreSkippedWithTheReason) {
  const std::string rest = "gpt2,gpt,12,768,12,3072,50257,1024,1,1,1,";
  const std::string two = "gpt2,gpt,12,768,12,3072,50257,1024,1,1,2,";
  const TrainingRuns runs = read(
      gpt_row("hf_eager", "4,4,none,1") + "c,H200-SXM5-141GB,1,x,int8," + rest + "0,4,4,none,1\n" +
      "d,H200-SXM5-141GB,2,x,fp32," + two + "4,4,8,none,1\n" + "e,H200-SXM5-141GB,1,x,fp32," +
      rest + "0,4,4,some,1\n" + "f,H200-SXM5-141GB,1,x,fp32," + rest + "0,4,4,none,\n" +
      "g,H200-SXM5-141GB,1,x,fp32,l,cnn,12,768,12,3072,50257,1024,1,1,1,0,4,4,none,1\n" +
      "h,T4,1,x,fp32," + rest + "0,4,4,none,1\n");
  EXPECT_EQ(runs.runs.size(), 1u);
  EXPECT_EQ(runs.left_out, 1);
  std::vector<std::string> reasons;
  for (const SkippedRun& run : runs.skipped) reasons.push_back(run.reason);
  EXPECT_THAT(reasons,
              ElementsAre("precision = int8 is not simulated", "zero_stage = 4 is not simulated",
                          "recompute = some is not simulated",
                          "model = l of family = cnn is not simulated", "it has no step_time_s"));
}

std::string refusal(const std::string& rows, const char* gpu = kGpu) {
  try {
    calibrate(read(rows, gpu));
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(what.find(".csv"));
  }
  return "none";
}

TEST(TrainingRuns, RefusalsNameTheRowAndTheValue) {
  EXPECT_EQ(refusal(""), ".csv: holds no row; measure one with tools/collect");
  EXPECT_EQ(refusal(gpt_row("x", "4,4,none,1"), "T4"),
            ".csv: holds no row of T4; it holds H200-SXM5-141GB");
  EXPECT_EQ(refusal(gpt_row("x", "4,four,none,1")),
            ".csv:2: global_batch = 'four'; give a whole number from 1 to 1000000000");
  EXPECT_EQ(refusal(gpt_row("x", "4,4,none,-1")),
            ".csv:2: step_time_s = '-1'; give a number above 0, at most 1e12");
  EXPECT_THAT(refusal(gpt_row("x", "4,4,some,1")),
              HasSubstr(".csv:2: cannot be used: recompute = some is not simulated"));
  EXPECT_THAT(refusal(gpt_row("x", "4,4,none,1")),
              HasSubstr("framework = 'x' stands for no profile"));
  EXPECT_THAT(refusal(gpt_row("hf", "3,4,none,1")),
              HasSubstr("does not divide global_batch / data = 4"));
}

TEST(ScenarioOfTrainingRun, TheFrameworkColumnPicksTheProfile) {
  const auto step = [](const std::string& row) { return scenario_of(read(row).runs.at(0)).step; };
  EXPECT_EQ(step(gpt_row("Megatron-LM", "4,4,,1")).framework.name, "megatron") << "on an H200";
  EXPECT_EQ(step(gpt_row("", "4,4,,1")).framework.name, "megatron-local");
  EXPECT_EQ(step(gpt_row("hf_eager", "4,4,,1")).framework.name, "hf-eager");
  EXPECT_EQ(step(gpt_row("hf_eager", "4,4,,1")).kernels, KernelMode::eager);
  EXPECT_EQ(step(gpt_row("hf_compiled", "4,4,,1")).kernels, KernelMode::fused);
  EXPECT_EQ(step(gpt_row("hf_eager", "2,8,,1")).micro_batches(), 4);
  EXPECT_EQ(step(gpt_row("hf_eager", "2,8,,1")).mode, StepMode::training);
}

}  // namespace
}  // namespace tessera
