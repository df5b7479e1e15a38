#include "app/html/page.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/html/comparison_page.h"
#include "app/html/page_source.h"
#include "app/html/step_page.h"
#include "sim/report/metrics.h"
#include "sim/trace/timeline_index.h"
#include "tests/app/html/inert_page.h"
#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
TEST(HtmlPage, HoldsTheDocumentAsItIs) {
  const Json document{{"title", kAttack}, {"numbers", {1, 2.5, -3e-9}}, {"nothing", nullptr}};
  const std::string page = html_page(document);
  EXPECT_EQ(data_of(page), document);
  expect_inert(page);
  EXPECT_EQ(page, html_page(document));
}

std::string text_of(std::string_view view) {
  return std::string(view);
}

TEST(HtmlPage, ItsPolicyAllowsItsOwnScriptAndStyleAlone) {
  const std::string page = html_page({{"title", "t"}});
  EXPECT_THAT(page,
              HasSubstr("content=\"default-src 'none'; script-src '" + text_of(kPageScript.hash) +
                        "'; style-src '" + text_of(kPageStyle.hash) + "'; base-uri 'none'"));
  EXPECT_THAT(text_of(kPageScript.hash), ::testing::MatchesRegex("sha256-[A-Za-z0-9+/]+=*"));
  EXPECT_THAT(page, HasSubstr("<script>" + text_of(kPageScript.text) + "</script>"));
  EXPECT_THAT(page, HasSubstr("<style>" + text_of(kPageStyle.text) + "</style>"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
}

constexpr PagePart kLibrary{"globalThis.echarts = {};", "sha256-of-it"};

TEST(HtmlPage, HoldsTheChartLibraryWhereThereIsSomethingToDraw) {
  for (const char* member : {"memory", "links", "roofline", "points", "scatter"}) {
    const std::string page = html_page({{member, Json::object()}}, kLibrary);
    EXPECT_THAT(page, HasSubstr("<script>" + text_of(kLibrary.text) + "</script>")) << member;
    EXPECT_THAT(page,
                HasSubstr("script-src 'sha256-of-it' '" + text_of(kPageScript.hash) + "'; style"));
  }
  for (const Json& document : {Json{{"tables", Json::array()}}, Json{{"links", nullptr}}})
    EXPECT_THAT(html_page(document, kLibrary), Not(HasSubstr("sha256-of-it")));
}

TEST(HtmlPage, OfABuildWithoutChartsHoldsTheDataAndNoEmptyScript) {
  const Json document{{"memory", {{"ranks", Json::array()}}}};
  const std::string page = html_page(document, PagePart{"", "sha256-of-nothing"});
  EXPECT_EQ(data_of(page), document);
  EXPECT_THAT(page, Not(HasSubstr("sha256-of-nothing")));
  EXPECT_THAT(page, Not(HasSubstr("<script></script>")));
}

struct Step {
  TimedProgram timed = testing::one_f_one_b_step(2, 3);
  Timeline timeline = testing::ideal_timeline(timed);
};

TEST(StepPage, TextOfTheUserIsData) {
  Step step;
  step.timed.program.segments[0].name = kAttack;
  step.timed.program.segments[0].kernels[0].name = kAttack;
  Provenance provenance;
  for (std::string* text : {&provenance.scenario, &provenance.model, &provenance.mode,
                            &provenance.framework, &provenance.recompute, &provenance.predictor,
                            &provenance.predictor_mode, &provenance.predictor_effect})
    *text = kAttack;
  provenance.predictor_notes = {kAttack};
  StepReport report = measure(step.timed, step.timeline);
  report.gpu = kAttack;
  const std::string page = step_page(report, provenance, step.timed, step.timeline);
  expect_inert(page);
  const Json names = data_of(page)["timeline"]["names"];
  EXPECT_NE(std::ranges::find(names, Json(kAttack)), names.end());
}

TEST(StepPage, SlicesAreTheRecords) {
  const Step step;
  const Json page =
      data_of(step_page(measure(step.timed, step.timeline), {}, step.timed, step.timeline));
  const Json& timeline = page["timeline"];
  const Json& row = timeline["rows"][0];
  EXPECT_EQ(row["name"], "GPU 0 compute");
  std::vector<std::pair<double, double>> slices;
  double at = 0;
  for (std::size_t i = 0; i < row["gaps"].size(); ++i) {
    const double begin = at + row["gaps"][i].get<double>();
    at = begin + row["lengths"][i].get<double>();
    slices.emplace_back(begin * 1e-9, at * 1e-9);
  }
  std::vector<std::pair<double, double>> records;
  const auto& ops = step.timed.program.stages[0].ops;
  for (const OpRecord& record : TimelineIndex(step.timed, step.timeline).records_of(0)) {
    if (ops[static_cast<std::size_t>(record.op)].kind != OpKind::kernels) continue;
    records.emplace_back(record.start.value(), record.end.value());
  }
  EXPECT_EQ(slices, records);
  EXPECT_EQ(timeline["step_time_s"], step.timeline.step_time.value());
  EXPECT_EQ(timeline["path"]["end"].back(), timeline["step_time_s"]);
  EXPECT_FALSE(timeline.contains("note")) << "nothing is left out";
}

TEST(StepPage, SharesOfEveryGpuAddUpToOne) {
  const Step step;
  const Json page =
      data_of(step_page(measure(step.timed, step.timeline), {}, step.timed, step.timeline));
  for (const Json& row : page["ranks"]["rows"]) {
    double sum = 0;
    for (const Json& share : row["shares"]) sum += share.get<double>();
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(StepPage, KeepsToItsLimitsAndSaysSo) {
  Step step;
  for (int i = 0; i < 50; ++i) step.timeline.memory.push_back({1, Seconds(i * 0.1), Bytes(i % 7)});
  const StepPageLimits limits{.slices = 1, .memory_ranks = 2, .memory_samples = 10};
  const Json page =
      data_of(step_page(measure(step.timed, step.timeline), {}, step.timed, step.timeline, limits));
  EXPECT_THAT(page["timeline"]["note"].get<std::string>(), HasSubstr("shown: 1 of 2 GPUs"));
  EXPECT_LE(page["memory"]["ranks"][1]["bytes"].size(), 10u);
  const Json& bytes = page["memory"]["ranks"][1]["bytes"];
  EXPECT_EQ(*std::ranges::max_element(bytes), 6) << "peaks stay";
}

TEST(ComparisonPage, TextOfTheUserIsData) {
  const StepProfile profile{.name = kAttack,
                            .step_time_s = 1,
                            .setup = {{"gpu", kAttack}},
                            .phases = {{kAttack, 1}},
                            .classes = {{kAttack, 1}}};
  StepProfile other = profile;
  other.setup[0].second = "B";
  expect_inert(comparison_page(compare_steps(profile, other), kAttack));
}

}  // namespace
}  // namespace tessera
