#include "sim/report/text/table.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/text/fitted_lines.h"
#include "tests/sim/report/sample_report.h"

namespace tessera {
namespace {

using namespace tessera::testing;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TextStyle kWithNotes{.notes = true};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Sum of the "%" column over the rows between the heading and the total.
double sum_of_shares(const std::string& table) {
  double sum = 0;
  bool inside = false;
  for (const std::string& line : lines_of(table)) {
    if (line.starts_with("  total")) break;
    if (inside) sum += std::stod(line.substr(line.find_last_of(' ')));
    if (line.starts_with("time of a GPU")) inside = true;
  }
  return sum;
}

TEST(Table, ShowsTheReportAsAPersonReadsIt) {
  EXPECT_EQ(table_text(sample_report(), sample_provenance(), kWithNotes),
            R"(sample: training step of two-layers on 2 x G100
tensor 1, pipeline 2, data 1, 1 micro-batch; predictor roofline, tessera 1.2.3
framework megatron, fp32, recompute full
zero-shot: nothing was measured on G100

step time                 6000.000 ms
throughput                100.0 tokens/s, 50.00 tokens/s per GPU, 0.500
                          samples/s
MFU, HFU [1]              25.0 %, 30.0 % of 0.000 TFLOP/s (dense fp32) per GPU
bubble fraction [2]       50.0 %
exposed comm. [3]         0.000 ms, 0.0 %

time of a GPU [4]                   ms       %
  forward                     1000.000    16.7
  backward                    2000.000    33.3
  bubble                      3000.000    50.0
  total                       6000.000   100.0

longest kernel kinds
  gemm                        3000.000    50.0         4 launches

longest segments
  layers.backward             2000.000    33.3         1 runs
  layers.forward              1000.000    16.7         1 runs

memory                    0.00 GiB of 0.00 GiB: fits, 0.00 GiB free
                          on GPU 0: reserved 0.00 GiB, CUDA context 0.00 GiB,
                          NCCL 0.00 GiB
peak memory               0.00 GiB allocated, of which 0.00 GiB static

[1] model FLOPs utilization: FLOPs of matrix products, convolutions and fused
    attention (half of it where causal) without recomputation / (step time x
    GPUs x dense peak of the precision in which most of them are done)
[1] hardware FLOPs utilization: as MFU, with the FLOPs that are executed,
    recomputation included
[2] share of the step in which a GPU runs no kernel because other pipeline
    stages are still at work, mean over GPUs; a message on its way counts as
    exposed communication
[3] time in which a GPU runs no kernel and waits for a collective or message,
    from joining it to its end, without the bubble, mean over GPUs
[4] what the compute stream of a GPU does, mean over GPUs; adds up to the step
    time
)");
}

TEST(Table, SharesAddUpToHundredPercentHoweverTheyRound) {
  StepReport report = sample_report();
  for (const TimeCategory category : time_categories()) report.breakdown[category] = 1_s;
  // 13 categories of 7.69 %: rounded one by one they would add up to 100.1 %
  EXPECT_NEAR(sum_of_shares(table_text(report, sample_provenance())), 100.0, 1e-9);
}

TEST(Table, KeepsToTheWidthOfATerminal) {
  Provenance provenance = sample_provenance();
  provenance.approximations = {
      "a sentence of many words that goes on and on until no line of any "
      "terminal that people have can hold all of it at once"};
  for (const TextStyle style : {TextStyle{}, kWithNotes, TextStyle{.notes = true, .colour = true}})
    for (const std::string& line : lines_of(table_text(sample_report(), provenance, style)))
      EXPECT_LE(columns_of(line), 80u) << line;
}

TEST(Table, SaysWhatTermsMeanWhereItIsAsked) {
  const std::string plain = table_text(sample_report(), sample_provenance());
  EXPECT_THAT(plain, Not(HasSubstr("[1]")));
  EXPECT_THAT(plain, HasSubstr("what the terms mean, and what the prediction rests on: --notes\n"));
  EXPECT_THAT(plain, HasSubstr("\nMFU, HFU                  25.0 %"));
}

TEST(Table, BarsAreAsLongAsTheirShareOfTheLongest) {
  const std::string text = table_text(sample_report(), sample_provenance(), {.colour = true});
  const auto bar = [](int columns) {
    std::string blocks;
    for (int i = 0; i < columns; ++i) blocks += "█";
    return blocks;
  };
  EXPECT_THAT(text, HasSubstr("50.0  " + mark_of(TimeCategory::bubble) + bar(30)));
  EXPECT_THAT(text, HasSubstr("33.3  " + mark_of(TimeCategory::backward) + bar(19) + "█"));
  const std::string coloured = terminal_colours(text);
  EXPECT_THAT(coloured, HasSubstr("\x1b[38;2;139;144;152m█"));  // #8b9098
  EXPECT_THAT(coloured, Not(HasSubstr("\xEE")));
}

TEST(Table, OfAReplayHasNoFieldsThatTracesDoNotSay) {
  Provenance provenance = sample_provenance();
  provenance.mode = "replayed";
  const std::string text = table_text(sample_report(), provenance);
  for (const char* unknown :
       {"tensor 1", "framework", "throughput", "MFU", "bubble fraction", "peak memory"})
    EXPECT_THAT(text, Not(HasSubstr(unknown)));
  EXPECT_THAT(text, HasSubstr("exposed comm."));
}

TEST(FittedLines, WhatGoesOnStandsBelowTheValue) {
  EXPECT_EQ(fitted("label   one two three\n", 16), "label   one two\n        three\n");
  EXPECT_EQ(fitted("  a sentence of words", 12), "  a sentence\n    of words");
  EXPECT_EQ(fitted("averylongwordwithoutspaces", 10), "averylongwordwithoutspaces");
}

TEST(Table, SaysWhatIsMissingWhereTheStepDoesNotFit) {
  StepReport report = sample_report();
  report.memory.capacity = 80_GiB;
  report.memory.peak = 76_GiB;
  report.memory.reserved = 78_GiB;
  report.memory.context = 1_GiB;
  report.memory.communicators = 3_GiB;
  report.memory.device = 82_GiB;
  report.memory.per_rank = {{.rank = 0,
                             .stage = 0,
                             .static_bytes = 50_GiB,
                             .peak = 76_GiB,
                             .reserved = 78_GiB,
                             .device = 82_GiB,
                             .fits = false,
                             .headroom = -2_GiB}};
  const std::string text = table_text(report, sample_provenance());
  EXPECT_THAT(text, HasSubstr("82.00 GiB of 80.00 GiB: DOES NOT FIT, 2.00 GiB too\n"));
  EXPECT_THAT(text, HasSubstr("reserved 78.00 GiB, CUDA context 1.00 GiB,\n"));
  EXPECT_THAT(text, HasSubstr("76.00 GiB allocated, of which 50.00 GiB static"));
}

TEST(Table, SaysHowLargeTheModelIsAndWhatToKnowOfTheResult) {
  Provenance provenance = sample_provenance();
  provenance.parameters = {.total = 46'702'792'704, .active = 12'879'925'248};
  provenance.notes = {"no KV cache is kept or read"};
  const std::string text = table_text(sample_report(), provenance);
  EXPECT_THAT(text, HasSubstr("46.70 billion parameters,"));
  EXPECT_THAT(text, HasSubstr("  note: no KV cache is kept or read\n"));
}

TEST(Table, HasNoUtilizationWithoutAPublishedPeak) {
  StepReport report = sample_report();
  report.mfu.reset();
  report.hfu.reset();
  EXPECT_THAT(table_text(report, sample_provenance()), HasSubstr("n/a: no published fp32 peak"));
}

TEST(Table, SaysHowUtilizationCanBeAboveThePeak) {
  StepReport report = sample_report();
  EXPECT_THAT(table_text(report, sample_provenance()), Not(HasSubstr("Winograd")));
  report.mfu = 1.5;
  report.counted.winograd = 0.75;
  EXPECT_THAT(table_text(report, sample_provenance(), kWithNotes),
              HasSubstr("\n[1] 75.0 % of these FLOPs are of fp32 convolutions with 3x3 windows"));
  report.counted.other_precisions = 0.25;
  EXPECT_THAT(table_text(report, sample_provenance(), kWithNotes),
              HasSubstr("\n[1] 25.0 % of these FLOPs are done in other precisions"));
}

TEST(Table, TellsCopiesFromCommunication) {
  StepReport report = sample_report();
  EXPECT_THAT(table_text(report, sample_provenance()), Not(HasSubstr("copies")));
  report.breakdown[TimeCategory::exposed_swap] = 3_s;
  const std::string text = table_text(report, sample_provenance(), kWithNotes);
  EXPECT_THAT(text, HasSubstr("exposed comm. [3]         0.000 ms, 0.0 %\n"
                              "exposed copies [6]        3000.000 ms, 50.0 %\n"));
  EXPECT_THAT(text, HasSubstr("\n[6] time in which a GPU runs no kernel and waits for copies"));
}

TEST(Table, SaysWhyKindsOfKernelsTakeLongerThanTheStep) {
  StepReport report = sample_report();
  EXPECT_THAT(table_text(report, sample_provenance()), Not(HasSubstr("[7]")));
  report.kernel_kinds.push_back({KernelKind::copy, 4_s, 1});  // 3 s of 6 s are of products
  const std::string text = table_text(report, sample_provenance(), kWithNotes);
  EXPECT_THAT(text, HasSubstr("\nlongest kernel kinds [7]\n"));
  EXPECT_THAT(text, HasSubstr("\n[7] kernels on streams of their own"));
}

TEST(Table, NamesWhatAGpuWasCalibratedWith) {
  Provenance provenance = sample_provenance();
  provenance.predictor_mode = "calibrated-steps";
  provenance.predictor_effect = "3 training steps of runs.csv";
  EXPECT_THAT(table_text(sample_report(), provenance),
              HasSubstr("\ncalibrated-steps for G100: 3 training steps of runs.csv\n"));
}

TEST(Table, SaysWhatWasNeverMeasured) {
  Provenance provenance = sample_provenance();
  EXPECT_THAT(table_text(sample_report(), provenance), Not(HasSubstr("note:")));
  provenance.predictor_notes = {"bf16 products on G100: never measured; rates of G99"};
  EXPECT_THAT(table_text(sample_report(), provenance), HasSubstr("; 1 more: --notes\n"));
  EXPECT_THAT(table_text(sample_report(), provenance, kWithNotes),
              HasSubstr("\n  note: bf16 products on G100: never measured; rates of G99\n"));
}

TEST(Table, SaysWhatToKnowOfTheLinks) {
  Provenance provenance = sample_provenance();
  EXPECT_THAT(table_text(sample_report(), provenance), Not(HasSubstr("links:")));
  provenance.link_notes = {"a GPU's NICs carry 50 GB/s, the way to them 32 GB/s"};
  EXPECT_THAT(table_text(sample_report(), provenance),
              HasSubstr("\n  links: a GPU's NICs carry 50 GB/s, the way to them 32 GB/s\n"));
}

TEST(Table, SaysWhereTheScenarioIsNotTheJob) {
  Provenance provenance = sample_provenance();
  EXPECT_THAT(table_text(sample_report(), provenance), Not(HasSubstr("approximate")));
  provenance.approximations = {"--mtp-num-layers = 1 is left out"};
  EXPECT_THAT(table_text(sample_report(), provenance),
              HasSubstr("\napproximate: --mtp-num-layers = 1 is left out\n"));
}

TEST(Table, SaysInOneLineWhatThePredictionRestsOnAndMoreWithNotes) {
  Provenance provenance = sample_provenance();
  provenance.predictor_notes = {"bf16 products: never measured"};
  StepReport report = sample_report();
  report.extrapolated = {{KernelKind::gemm, "k", 1.5, 0.2}};
  const std::string plain = table_text(report, provenance);
  const std::string with_notes = table_text(report, provenance, kWithNotes);
  EXPECT_THAT(plain, HasSubstr("\nzero-shot: nothing was measured on G100; 1 more: --notes\n"));
  for (const char* words : {"bf16 products: never measured", "extrapolated"}) {
    EXPECT_THAT(plain, Not(HasSubstr(words)));
    EXPECT_THAT(with_notes, HasSubstr(words));
  }
}

TEST(Table, MentionsExtrapolationOnlyWhereThereIsSome) {
  StepReport report = sample_report();
  EXPECT_THAT(table_text(report, sample_provenance(), kWithNotes), Not(HasSubstr("extrapolated")));
  report.extrapolated = {{KernelKind::gemm, "k", 1.5, 0.2},
                         {KernelKind::softmax, "traffic", 4, 0.05}};
  const std::string table = table_text(report, sample_provenance(), kWithNotes);
  EXPECT_THAT(table, HasSubstr("25.0 % of the kernel time"));
  EXPECT_THAT(table, HasSubstr("k of gemm up to 1.5x, traffic of softmax up to 4.0x"));
}

}  // namespace
}  // namespace tessera
