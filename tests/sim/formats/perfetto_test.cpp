#include "sim/formats/perfetto.h"

#include <map>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/trace/timeline_index.h"
#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera {
namespace {

using namespace tessera::testing;
using nlohmann::json;

std::vector<json> events_of(const std::string& trace, const std::string& phase) {
  const json file = json::parse(trace);
  std::vector<json> events;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

/// Whole nanoseconds of a time in microseconds.
std::int64_t ns(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

struct Interval {
  std::int64_t begin;
  std::int64_t end;
};

using TrackKey = std::pair<int, int>;
TrackKey track_of(const json& event) {
  return {event["pid"], event["tid"]};
}

std::map<TrackKey, std::vector<Interval>> slices_by_track(const std::string& trace) {
  std::map<TrackKey, std::vector<Interval>> tracks;
  for (const json& event : events_of(trace, "X")) {
    const std::int64_t begin = ns(event["ts"]);
    tracks[track_of(event)].push_back({begin, begin + ns(event["dur"])});
  }
  return tracks;
}

std::int64_t kernels_that_ran(const TimedProgram& timed, const Timeline& timeline) {
  std::int64_t count = 0;
  const TimelineIndex index(timed, timeline);
  for (const auto& [rank, stands_for] : index.simulated()) {
    for (const OpRecord& record : index.records_of(rank)) {
      const ProgramOp& op = index.program_of(rank).ops[static_cast<std::size_t>(record.op)];
      if (op.kind != OpKind::kernels) continue;
      count += static_cast<std::int64_t>(timed.program.segment(op.segment).kernels.size());
    }
  }
  return count;
}

/// Three stages with durations that are no whole nanoseconds.
struct PipelineTrace {
  TimedProgram timed = one_f_one_b_step(3, 4);
  Timeline timeline = ideal_timeline(timed, Seconds(1.0 / 3e6));
  std::string text = perfetto_trace(timed, timeline);
};

TEST(PerfettoTrace, SlicesOfATrackAreSortedAndNestOrFollow) {
  const PipelineTrace trace;
  for (const auto& [track, slices] : slices_by_track(trace.text)) {
    std::vector<Interval> open;
    for (const Interval& slice : slices) {
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (open.empty()) {
        open.push_back(slice);
        continue;
      }
      EXPECT_GE(slice.begin, open.back().begin);
      EXPECT_LE(slice.end, open.back().end);
      open.push_back(slice);
    }
  }
}

TEST(PerfettoTrace, HasOneSlicePerKernelThatRan) {
  const PipelineTrace trace;
  std::int64_t kernels = 0;
  for (const json& event : events_of(trace.text, "X")) kernels += event["cat"] == "kernel";
  EXPECT_EQ(kernels, kernels_that_ran(trace.timed, trace.timeline));
  EXPECT_EQ(kernels,
            3 * 4 * 2 * 2);  // stages, micro-batches, forward and backward, kernels in each
}

TEST(PerfettoTrace, EveryArrowLeavesASendAndEntersItsRecv) {
  const PipelineTrace trace;
  std::map<int, json> starts;
  for (const json& event : events_of(trace.text, "s")) starts[event["id"]] = event;
  const std::vector<json> ends = events_of(trace.text, "f");
  EXPECT_EQ(starts.size(), 2u * 2 * 4);  // two boundaries, two directions, four micro-batches
  EXPECT_EQ(ends.size(), starts.size());
  const auto slices = slices_by_track(trace.text);
  const auto inside = [&](const json& event) {
    const std::int64_t time = ns(event["ts"]);
    const auto& track = slices.at(track_of(event));
    return std::any_of(track.begin(), track.end(),
                       [&](const Interval& s) { return s.begin <= time && time < s.end; });
  };
  for (const json& end : ends) {
    ASSERT_TRUE(starts.count(end["id"]));
    const json& start = starts[end["id"]];
    EXPECT_LE(ns(start["ts"]), ns(end["ts"]));
    EXPECT_NE(start["pid"], end["pid"]);
    EXPECT_TRUE(inside(start) && inside(end));
  }
}

TEST(PerfettoTrace, KernelBoundariesArePrefixSumsStretchedToTheRecord) {
  TimedProgram timed = handmade_program({});
  add_op(timed, 0, run_of(add_segment(timed, "s", Phase::loss, {1.0, 3.0}), Phase::loss));
  Timeline timeline;
  record_op(timeline, 0, 10, 18);  // 4 s of kernels that took 8 s
  const std::vector<json> slices = events_of(perfetto_trace(timed, timeline), "X");
  ASSERT_EQ(slices.size(), 3u);  // the segment and its two kernels
  EXPECT_EQ(slices[1]["ts"], 10e6);
  EXPECT_EQ(slices[1]["dur"], 2e6);
  EXPECT_EQ(slices[2]["ts"], 12e6);
  EXPECT_EQ(slices[2]["dur"], 6e6);
}

TEST(PerfettoTrace, SlicesSayWhatTheyAre) {
  TimedProgram timed = handmade_program({});
  ProgramOp run = run_of(add_segment(timed, "mlp", Phase::backward, {1.0}), Phase::backward, 5);
  run.layer = 7;
  const auto before = add_op(timed, 0, run);
  add_op(timed, 0, all_reduce_over(GroupKind::tensor, before));
  Timeline timeline;
  record_op(timeline, 0, 0, 1);
  record_op(timeline, 1, 1, 3);
  timeline.ops.back().transfer_start = 2_s;
  const std::vector<json> slices = events_of(perfetto_trace(timed, timeline), "X");
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[1]["name"], "mlp.0");
  EXPECT_EQ(slices[1]["args"],
            json::parse(R"({"phase": "backward", "class": "backward", "layer": 7, "micro_batch": 5,
      "kind": "gemm", "precision": "fp32", "flops": 10, "bytes": 3})"));
  EXPECT_EQ(slices[2]["name"], "all_reduce tensor");
  EXPECT_EQ(
      slices[2]["args"],
      json::parse(
          R"({"phase": "forward", "class": "exposed_tensor", "colour": "#dd6140", "bytes": 64, "group": "tensor",
      "waited_ns": 1000000000})"));
}

TEST(PerfettoTrace, NamesGpusAndStreams) {
  const PipelineTrace trace;
  std::map<TrackKey, std::string> names;
  for (const json& event : events_of(trace.text, "M")) {
    if (event["args"].contains("name")) names[track_of(event)] = event["args"]["name"];
  }
  EXPECT_EQ((names[{2, 0}]), "GPU 1 (G100, stage 1, tensor 0, data 0)");
  EXPECT_EQ((names[{2, 1}]), "compute");
  for (const auto& [track, slices] : slices_by_track(trace.text)) EXPECT_TRUE(names.count(track));
}

TEST(PerfettoTrace, MemoryCounterFollowsTheSamples) {
  TimedProgram timed = handmade_program({});
  timed.program.stages[0].static_memory = 30_B;
  Timeline timeline;
  timeline.memory = {{0, 1_s, 70_B}, {0, 2_s, 30_B}};
  const std::vector<json> counters = events_of(perfetto_trace(timed, timeline), "C");
  ASSERT_EQ(counters.size(), 3u);
  EXPECT_EQ(counters[0]["ts"], 0);  // static memory until the first sample
  EXPECT_EQ(counters[0]["args"]["bytes"], 30);
  EXPECT_EQ(counters[1]["args"]["bytes"], 70);
  EXPECT_EQ(counters[2]["ts"], 2e6);
  EXPECT_EQ(counters[2]["args"]["bytes"], 30);
}

TEST(PerfettoTrace, HostileNamesStayOneString) {
  TimedProgram timed = handmade_program({});
  const std::string hostile = "a\"b\\c\n\x01</script>\xff";
  add_op(timed, 0, run_of(add_segment(timed, hostile, Phase::forward, {1.0}), Phase::forward));
  const std::string trace = perfetto_trace(timed, ideal_timeline(timed));
  EXPECT_EQ(events_of(trace, "X").front()["name"], "a\"b\\c\n\x01</script>\xef\xbf\xbd");
}

TEST(PerfettoTrace, EqualTimelinesGiveEqualBytes) {
  EXPECT_EQ(PipelineTrace().text, PipelineTrace().text);
}

TEST(PerfettoTrace, TimesAreExactToANanosecond) {
  TimedProgram timed = handmade_program({});
  const double duration = 12.345678901;  // s
  add_op(timed, 0, run_of(add_segment(timed, "s", Phase::loss, {duration}), Phase::loss));
  const std::string trace = perfetto_trace(timed, ideal_timeline(timed));
  EXPECT_THAT(trace, ::testing::HasSubstr("\"ts\":0,\"dur\":12345678.901,"));
}

}  // namespace
}  // namespace tessera
