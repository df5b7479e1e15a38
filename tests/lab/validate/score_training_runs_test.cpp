#include "lab/validate/runs/score_training_runs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/validate/runs/training_run_text.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"
#include "tests/hw/units/scratch.h"
#include "tests/lab/validate/one_row.h"
#include "tests/lab/validate/shipped_rows.h"
#include "tests/lab/validate/training_run_rows.h"

namespace tessera {
namespace {

using test::read;
using test::row;
using test::scenario_of;
using test::trained;
using ::testing::HasSubstr;

TrainingRunValidation score(const std::string& rows) {
  return score_training_runs(read(rows), scenario_of, trained(), 2,
                             [](std::size_t, std::size_t) {});
}

TEST(ScoreTrainingRuns, ComparesWhatASimulationOfTheScenarioGives) {
  const std::string rows =
      row("a", "Megatron-LM v2.0", "fp16", "gpt", "full", "0", "0.04,3.5,allocated");
  const TrainingRunValidation validation = score(rows);
  ASSERT_EQ(validation.rows.size(), 1u);
  const TrainingRunScore& scored = validation.rows[0];
  EXPECT_EQ(scored.skipped, "");
  EXPECT_EQ(scored.profile, "megatron-deepspeed");
  const std::string direct = run_forked([&] {
    const Timeline timeline = simulate(plan_step(scenario_of(read(rows).runs[0]), trained()));
    return std::to_string(timeline.step_time.value() * 1e9);
  });
  EXPECT_NEAR(scored.simulated->value(), std::stod(direct) * 1e-9, 1e-12);
  EXPECT_NEAR(*scored.error_pct, 100 * (scored.simulated->value() / 0.04 - 1), 1e-9);
  EXPECT_NEAR(*scored.memory_error_pct, 100 * (*scored.simulated_peak_gib / 3.5 - 1), 1e-9);
  EXPECT_EQ(validation.summary.n, 1);
  EXPECT_EQ(validation.memory.n, 1);
}

TEST(ScoreTrainingRuns, RowsKeepTheOrderOfTheFileWhetherSkippedOrNot) {
  const TrainingRunValidation validation =
      score(row("a", "x", "fp16", "gpt", "none", "0", "0.04,,") +
            row("b", "NeMo", "bf16", "gpt", "none", "1", "0.04,,") +
            row("c", "NeMo", "bf16", "cnn", "none", "1", "0.04,,") +
            row("d", "hf", "fp32", "gpt", "none", "", ",,"));
  std::vector<std::string> ids;
  for (const TrainingRunScore& scored : validation.rows) ids.push_back(scored.run.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_THAT(validation.rows[0].skipped, HasSubstr("'x' stands for no profile"));
  EXPECT_TRUE(validation.rows[1].error_pct);
  EXPECT_THAT(validation.rows[2].skipped, HasSubstr("family = cnn"));
  EXPECT_TRUE(validation.rows[3].simulated);
  EXPECT_FALSE(validation.rows[3].error_pct) << "nothing was measured";
  EXPECT_EQ(validation.summary.n, 1);
}

TEST(ScoreTrainingRuns, ImageModelsStateNeitherLayersNorASequence) {
  const std::string rows =
      "r,A100-SXM4-80GB,1,8,DLPerf 2020,fp32,ResNet50 v1.5 (NGC "
      "PyTorch),cnn,,,,,,,,,1,1,1,4,4,none,,"
      "sgd,0.05,,\n"
      "x,A100-SXM4-80GB,1,8,DLPerf "
      "2020,fp32,MobileNetV2,cnn,,,,,,,,,1,1,1,4,4,none,,sgd,0.05,,\n";
  const TrainingRuns runs = read(rows);
  ASSERT_EQ(runs.runs.size(), 1u);
  const Scenario scenario = scenario_of(runs.runs[0]);
  EXPECT_EQ(scenario.model.architecture, VisionArchitecture::resnet50);
  EXPECT_EQ(scenario.model.image_size, 224);
  EXPECT_EQ(scenario.step.optimizer, OptimizerKind::sgd);
  EXPECT_EQ(scenario.step.framework.name, "hf-eager");
  EXPECT_THAT(runs.skipped.at(0).reason, HasSubstr("MobileNetV2 of family = cnn"));
  EXPECT_TRUE(score(rows).rows[0].error_pct);
}

TEST(ScoreTrainingRuns, NamesOfImageModelsStartWithTheirArchitectures) {
  const auto architecture = [](const std::string& model) {
    const TrainingRuns runs = read("r,V100-SXM2-16GB,1,8,PyTorch NGC 21.03 / DALI,fp32," + model +
                                   ",cnn,,,,,,,,,1,1,1,4,4,none,,sgd,0.05,,\n");
    return scenario_of(runs.runs.at(0)).model.architecture;
  };
  EXPECT_EQ(architecture("ResNet101 v1.5"), VisionArchitecture::resnet101);
  EXPECT_EQ(architecture("ResNeXt101-32x4d"), VisionArchitecture::resnext101_32x4d);
  EXPECT_EQ(architecture("SE-ResNeXt101-32x4d"), VisionArchitecture::se_resnext101_32x4d);
}

TEST(ScoreTrainingRuns, ExpertsAreWholeWhereAColumnOrTheNameSaysSo) {
  const auto experts = [](const std::string& model, const std::string& family,
                          const std::string& etp) {
    const ScratchFolder folder;
    const auto path = folder.path() / "experts.csv";
    std::ofstream(path)
        << "gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,vocab,seq_len,experts,"
           "experts_per_token,tp,sequence_parallel,dp,ep,etp,global_batch,step_time_s\n"
        << "A100-SXM4-80GB,8,NeMo,bf16," << model << "," << family << ",2,512,8,51200,1024,"
        << (family == "moe" ? "8,2" : ",") << ",2,1,4," << (family == "moe" ? "4," : "1,") << etp
        << ",32,\n";
    const TrainingRuns runs = read_training_runs(path, test::shipped_rules());
    return scenario_of(runs.runs.at(0)).step.layout.expert_tensor;
  };
  EXPECT_EQ(experts("gpt_8experts_etp1_ep4", "moe", ""), 1);
  EXPECT_EQ(experts("gpt_8experts_etp1_ep4", "moe", "2"), 2) << "the column counts first";
  EXPECT_EQ(experts("gpt_8experts", "moe", "1"), 1);
  EXPECT_EQ(experts("gpt_8experts_ep4", "moe", ""), 0);
  EXPECT_EQ(experts("gpt_cp2_etp4", "gpt", ""), 0) << "no experts to split";
}

TEST(ScoreTrainingRuns, InstancesOfTheOptimizerAreTwoWhereTheNameHasNoNumber) {
  const auto group = [](const std::string& model, const std::string& stated) {
    const ScratchFolder folder;
    const auto path = folder.path() / "instances.csv";
    std::ofstream(path)
        << "gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,vocab,seq_len,tp,dp,"
           "zero_stage,zero_group_size,global_batch,step_time_s\n"
        << "A100-SXM4-80GB,8,NeMo,bf16," << model << ",gpt,2,512,8,51200,1024,1,8,1," << stated
        << ",32,\n";
    const TrainingRuns runs = read_training_runs(path, test::shipped_rules());
    return scenario_of(runs.runs.at(0)).step.data_parallel.shard_group;
  };
  EXPECT_EQ(group("gpt_multi_dist_optimizer_instances", ""), 4);
  EXPECT_EQ(group("gpt_multi_dist_optimizer_instances", "2"), 2) << "the column counts first";
  EXPECT_EQ(group("gpt_dist_optimizer", ""), 0);
}

TEST(ScoreTrainingRuns, QueriesAndKeysAreNormalizedWhereTheNameSaysSo) {
  const ScratchFolder folder;
  const auto path = folder.path() / "norms.csv";
  std::ofstream(path)
      << "gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,vocab,seq_len,tp,dp,"
         "global_batch,step_time_s\n"
      << "A100-SXM4-80GB,8,Megatron-Core,bf16,gpt_tp4_qk_layernorm,gpt,2,512,8,51200,1024,4,2,32,\n"
      << "A100-SXM4-80GB,8,Megatron-Core,bf16,gpt_tp4,gpt,2,512,8,51200,1024,4,2,32,\n";
  const TrainingRuns runs = read_training_runs(path, test::shipped_rules());
  EXPECT_TRUE(scenario_of(runs.runs.at(0)).model.qk_norm);
  EXPECT_FALSE(scenario_of(runs.runs.at(1)).model.qk_norm);
}

TEST(ScoreTrainingRuns, TheFormatsCarryEveryRow) {
  const TrainingRunValidation validation =
      score(row("a", "NeMo", "bf16", "gpt", "none", "1", "0.04,3.5,smi") +
            row("b", "x", "bf16", "gpt", "none", "1", "0.04,,"));
  const auto json = nlohmann::json::parse(training_run_json(validation));
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["id"], "a");
  EXPECT_EQ(json["rows"][0]["measured_s"], 0.04);
  EXPECT_TRUE(json["rows"][0]["simulated_s"].is_number());
  EXPECT_EQ(json["rows"][0]["memory_metric"], "smi");
  EXPECT_TRUE(json["rows"][0]["skipped"].is_null());
  EXPECT_TRUE(json["rows"][1]["simulated_s"].is_null());
  EXPECT_TRUE(json["rows"][1]["skipped"].is_string());
  EXPECT_EQ(json["summary"]["n"], 1);
  const std::string csv = training_run_csv(validation);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  EXPECT_THAT(training_run_table(validation),
              HasSubstr("skipped 1 row: framework = 'x' stands for no profile"));
}

TEST(ScoreTrainingRuns, EveryRowHasAnIntervalAndGroupsSayHowManyItHolds) {
  const TrainingRunValidation once = score(row("a", "NeMo", "bf16", "gpt", "none", "1", "0.04,,"));
  const Bounds interval = once.rows[0].interval.value();
  EXPECT_LT(interval.low, once.rows[0].simulated->value());
  EXPECT_GT(interval.high, once.rows[0].simulated->value());
  const std::string inside = std::to_string(once.rows[0].simulated->value());
  const TrainingRunValidation two =
      score(row("a", "NeMo", "bf16", "gpt", "none", "1", inside + ",,") +
            row("b", "NeMo", "bf16", "gpt", "none", "1", "9,,"));
  EXPECT_EQ(two.summary.intervals, 2);
  EXPECT_EQ(two.summary.covered, 1);
  EXPECT_DOUBLE_EQ(*two.groups.at(0).errors.coverage_pct(), 50);
  const auto json = nlohmann::json::parse(training_run_json(two));
  EXPECT_EQ(json["summary"]["coverage_80_pct"], 50);
  EXPECT_EQ(json["groups"][0]["coverage_80_pct"], 50);
  EXPECT_DOUBLE_EQ(json["rows"][0]["low_s"], interval.low);
  EXPECT_DOUBLE_EQ(json["rows"][0]["high_s"], interval.high);
  EXPECT_THAT(training_run_table(two), HasSubstr("80 % interval holds 50 %"));
}

TEST(ScoreTrainingRuns, JobsThatWereOutOfMemoryAreJudgedByTheVerdict) {
  const auto line = [](const std::string& id, const std::string& layers, const std::string& end) {
    return id + ",H100-SXM5-80GB,8,Megatron-Core,bf16,m,llama," + layers +
           ",8192,64,32000,4096,1,8,1,8," + end + "\n";
  };
  const auto path = test::planted(
      "runs.csv",
      "id,gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,vocab,seq_len,tp,dp,"
      "micro_batch,global_batch,step_time_s,outcome\n" +
          line("found", "80", ",oom") + line("missed", "1", ",oom") + line("ran", "1", "0.1,ok"));
  const TrainingRunValidation validation =
      score_training_runs(read_training_runs(path, test::shipped_rules()), scenario_of, trained(),
                          2, [](std::size_t, std::size_t) {});
  EXPECT_FALSE(validation.rows[0].simulated) << "memory alone";
  EXPECT_EQ(validation.rows[0].fits, std::optional(false));
  EXPECT_EQ(validation.rows[1].fits, std::optional(true));
  EXPECT_EQ(validation.rows[2].fits, std::optional(true));
  EXPECT_EQ(validation.verdicts.out_of_memory, 2);
  EXPECT_EQ(validation.verdicts.out_of_memory_found, 1);
  EXPECT_EQ(validation.verdicts.ran_found, 1);
  EXPECT_DOUBLE_EQ(*validation.verdicts.balanced_accuracy_pct(), 75);  // (1/2 + 1/1) / 2
  const auto json = nlohmann::json::parse(training_run_json(validation));
  EXPECT_EQ(json["fits"]["balanced_accuracy_pct"], 75);
  EXPECT_EQ(json["rows"][0]["fits"], false);
  EXPECT_EQ(json["rows"][0]["outcome"], "oom");
  EXPECT_EQ(json["rows"][2]["fits"], true);
  EXPECT_THAT(training_run_table(validation),
              HasSubstr("'does not fit': 1 of 2 jobs that were out of memory, balanced accuracy "
                        "75.0 %"));
}

TEST(ScoreTrainingRuns, SkippedRowsAreListedWithTheirIdsAndReasons) {
  const TrainingRunValidation validation =
      score(row("a", "x", "bf16", "gpt", "none", "1", "0.04,,") +
            row("", "x", "bf16", "gpt", "none", "1", "0.04,,"));
  const auto json = nlohmann::json::parse(training_run_json(validation))["skipped"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["id"], "a");
  EXPECT_EQ(json[1]["id"], "line 3");
  EXPECT_THAT(json[0]["reason"].get<std::string>(), HasSubstr("'x' stands for no profile"));
  EXPECT_THAT(training_run_table(validation), HasSubstr("skipped 2 rows: framework = 'x'"));
  EXPECT_THAT(training_run_table(validation), HasSubstr("(a, line 3)"));
  EXPECT_THROW(refuse_skipped(validation.skipped), InputError);
}

TEST(ScoreTrainingRuns, SourcesCountTheSameWhateverTheirRows) {
  constexpr const char* kNeeded =
      "source,gpu,n_gpus,precision,family,layers,hidden,heads,vocab,seq_len,global_batch,"
      "step_time_s\n";
  const ScratchFolder folder;
  const auto path = folder.path() / "needed.csv";
  const auto line = [](const char* source, const char* family, const char* measured) {
    return std::string(source) + ",A100-SXM4-80GB,1,bf16," + family + ",2,1024,16,51200,512,2," +
           measured + "\n";
  };
  std::ofstream(path) << kNeeded << line("lab/a README.md#L1", "gpt", "0.1")
                      << line("lab/a README.md#L2", "gpt", "0.1") << line("lab/b", "gpt", "0.001")
                      << line("lab/b", "cnn", "0.001");
  const TrainingRunValidation validation =
      score_training_runs(read_training_runs(path, test::shipped_rules()), scenario_of, trained(),
                          2, [](std::size_t, std::size_t) {});
  ASSERT_EQ(validation.sources.size(), 2u);
  EXPECT_EQ(validation.sources[0].source, "lab/a");
  EXPECT_EQ(validation.sources[0].errors.n, 2);
  EXPECT_EQ(validation.sources[1].measured, 2);
  EXPECT_EQ(validation.sources[1].expressed, 1);
  const double a = validation.sources[0].errors.mean_abs_error_pct;
  const double b = validation.sources[1].errors.mean_abs_error_pct;
  EXPECT_GT(b, a + 100) << "1 ms was never measured";
  EXPECT_NEAR(validation.over_sources.mean_abs_error_pct, (a + b) / 2, 1e-9);
  EXPECT_NEAR(validation.over_sources.largest_abs_bias_pct, b, 1e-9);
  EXPECT_EQ(read_training_runs(path, test::shipped_rules(),
                               {.filters = {parse_row_filter("source~README")}})
                .runs.size(),
            2u);
  EXPECT_EQ(read_training_runs(path, test::shipped_rules(),
                               {.filters = {parse_row_filter("source~#L2,/b")}})
                .runs.size(),
            2u);
  EXPECT_THROW(read_training_runs(path, test::shipped_rules(),
                                  {.filters = {parse_row_filter("source=README")}}),
               InputError);
  std::filesystem::remove(path);
}

TEST(ScoreTrainingRuns, ASimulationThatFailsCostsItsRowAlone) {
  const auto scenario_or_fault = [](const TrainingRun& run) {
    if (run.id == "b") throw std::logic_error("a fault of ours");
    return scenario_of(run);
  };
  const TrainingRunValidation validation =
      score_training_runs(read(row("a", "NeMo", "bf16", "gpt", "none", "1", "0.04,,") +
                               row("b", "NeMo", "bf16", "gpt", "none", "1", "0.04,,")),
                          scenario_or_fault, trained(), 2, [](std::size_t, std::size_t) {});
  EXPECT_TRUE(validation.rows[0].error_pct);
  EXPECT_THAT(validation.rows[1].skipped, HasSubstr("a fault of ours"));
  EXPECT_TRUE(validation.rows[1].failed);
  EXPECT_EQ(validation.failed, 1);
}

}  // namespace
}  // namespace tessera
