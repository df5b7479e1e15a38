#include "sim/report/analysis/critical_path.h"

#include <cmath>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/engine.h"
#include "sim/process/forked_call.h"
#include "sim/report/text/step_story.h"
#include "tests/sim/engine/program_builder.h"
#include "tests/sim/engine/random_program.h"

namespace tessera {
namespace {

using test::ProgramBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kTolerance = 1e-9;  // of the step time
constexpr std::uint64_t kSeeds = 200;

/// Runs `check` on a program and its timeline in a process of its own; what it found wrong.
std::string in_child(
    const TimedProgram& timed,
    const std::function<std::string(const TimedProgram&, const Timeline&)>& check) {
  return run_forked([&] { return check(timed, simulate(timed)); });
}

bool differ(Seconds a, Seconds b, Seconds whole) {
  return std::abs((a - b).value()) > kTolerance * whole.value() + 1e-15;
}

std::string faults_of_classes(const TimedProgram& timed, const Timeline& timeline) {
  const StepStory story = tell_step(timed, timeline);
  for (const RankStory& rank : story.ranks) {
    Seconds sum;
    for (const ClassTime& entry : rank.times) {
      if (entry.time < Seconds(-1e-12)) return "a negative time";
      sum += entry.time;
    }
    if (differ(sum, timeline.step_time, timeline.step_time))
      return "rank " + std::to_string(rank.rank) + " adds up to " + std::to_string(sum.value());
  }
  return "";
}

std::string faults_of_path(const TimedProgram& timed, const Timeline& timeline) {
  const StepStory story = tell_step(timed, timeline);
  Seconds at;
  Seconds unexplained;
  for (const PathPiece& piece : story.path) {
    if (piece.begin != at) return "a gap at " + std::to_string(at.value());
    if (piece.end <= piece.begin) return "an empty piece";
    if (piece.kind == PathPieceKind::unexplained) unexplained += piece.end - piece.begin;
    at = piece.end;
  }
  if (at != timeline.step_time) return "it ends at " + std::to_string(at.value());
  if (differ(unexplained, Seconds(), timeline.step_time))
    return "unexplained: " + std::to_string(unexplained.value());
  Seconds by_class;
  Seconds by_op;
  for (const ClassTime& entry : story.path_times) by_class += entry.time;
  for (const PathOp& op : story.path_ops) by_op += op.time;
  if (differ(by_class, timeline.step_time, timeline.step_time)) return "classes do not add up";
  return differ(by_op, timeline.step_time, timeline.step_time) ? "ops do not add up" : "";
}

/// With collectives that slow kernels down, jitter and a slow GPU, each in some of the programs.
TimedProgram uneven_program(std::uint64_t seed) {
  TimedProgram timed = test::random_program(seed);
  timed.collectives.slows_kernels = seed % 2 == 0;
  timed.paces.kernel_jitter = seed % 3 == 0 ? 0.3 : 0;
  if (seed % 5 < 2) {
    timed.paces.ranks.resize(static_cast<std::size_t>(timed.program.layout.world_size()));
    timed.paces.ranks.front().slowdown = 1.5;
  }
  return timed;
}

TEST(StepStory, EveryInstantOfEveryRankIsInOneClass) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const TimedProgram timed = uneven_program(seed);
    EXPECT_EQ(in_child(timed, faults_of_classes), "") << seed;
  }
}

TEST(CriticalPath, IsContiguousFromTheStartOfTheStepToItsEndAndLeavesNothingUnexplained) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const TimedProgram timed = uneven_program(seed);
    EXPECT_EQ(in_child(timed, faults_of_path), "") << seed;
  }
}

/// Segments that the path runs through, and the step time.
struct Path {
  std::set<int> segments;
  double step_time = 0;
};

Path path_of(const TimedProgram& timed) {
  const std::string text = in_child(timed, [](const TimedProgram& program, const Timeline& line) {
    const TimelineIndex index(program, line);
    std::string answer;
    for (const PathPiece& piece : critical_path(program, line, index)) {
      if (piece.kind != PathPieceKind::kernels) continue;
      const auto& op = index.program_of(piece.rank).ops[static_cast<std::size_t>(piece.op)];
      answer += std::to_string(op.segment.index()) + " ";
    }
    char time[64];
    std::snprintf(time, sizeof time, "%a", line.step_time.value());
    return answer + time;
  });
  Path path;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(' ', begin)) != std::string::npos; begin = end + 1)
    path.segments.insert(std::stoi(text.substr(begin, end - begin)));
  path.step_time = std::strtod(text.c_str() + begin, nullptr);
  return path;
}

/// The first kernel takes `more`, all of them `factor` times as long.
TimedSegment changed(TimedSegment segment, Seconds more, double factor) {
  segment.kernel_durations.front() += more;
  for (Seconds& kernel : segment.kernel_durations) kernel = kernel * factor;
  segment.duration = (segment.duration + more) * factor;
  return segment;
}

// Without traffic that shares links a step is a longest path: what lies off it can only get shorter
// without effect, what lies on it lengthens the step by at least as much as it grows.
TEST(CriticalPath, WhatLiesOffItDoesNotMatterAndWhatLiesOnItDoes) {
  int off = 0;
  int on = 0;
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    TimedProgram timed = test::random_program(seed);
    timed.collectives.slows_kernels = false;
    timed.collectives.fidelity = NetworkFidelity::analytic;
    const Path before = path_of(timed);
    for (std::size_t i = 0; i < timed.segments.size(); i += 3) {
      const TimedSegment kept = timed.segments[i];
      const bool is_on = before.segments.contains(static_cast<int>(i));
      timed.segments[i] = is_on ? changed(kept, 7_us, 1) : changed(kept, Seconds(0), 0.5);
      const double after = path_of(timed).step_time;
      timed.segments[i] = kept;
      if (is_on) {
        EXPECT_GE(after, before.step_time + 7e-6 - 1e-12) << seed << " segment " << i;
        ++on;
      } else {
        EXPECT_NEAR(after, before.step_time, 1e-12) << seed << " segment " << i;
        ++off;
      }
    }
  }
  EXPECT_GT(on, 20) << "of each kind enough to mean something";
  EXPECT_GT(off, 20);
}

/// "kernels 0.0 0-10us" for every piece: kind, rank.op, begin and end.
std::string story_of(const TimedProgram& timed) {
  return in_child(timed, [](const TimedProgram& program, const Timeline& line) {
    const TimelineIndex index(program, line);
    std::string answer;
    for (const PathPiece& piece : critical_path(program, line, index)) {
      constexpr std::array kNames{"kernels", "collective", "message",    "copy",
                                  "memory",  "host",       "unexplained"};
      char text[128];
      std::snprintf(text, sizeof text, "%s %d.%d %.0f-%.0f; ",
                    kNames[static_cast<std::size_t>(piece.kind)], piece.rank, piece.op,
                    piece.begin.value() * 1e6, piece.end.value() * 1e6);
      answer += text;
    }
    return answer;
  });
}

TEST(CriticalPath, GoesThroughTheMemberThatComesLast) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  const auto early = builder.kernels(0, 10_us);
  builder.all_reduce(0, GroupKind::world, 1_MiB, StreamKind::data_comm, {early, -1});
  const auto late = builder.kernels(1, 50_us);
  builder.all_reduce(1, GroupKind::world, 1_MiB, StreamKind::data_comm, {late, -1});
  const std::string story = story_of(builder.build());
  EXPECT_THAT(story, HasSubstr("kernels 1.0 0-50; collective "));
  EXPECT_THAT(story, ::testing::Not(HasSubstr("kernels 0.0")));
}

TEST(CriticalPath, FollowsAMessageToItsSender) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  const auto work = builder.kernels(0, 30_us);
  builder.send(0, 1, 7, 1_MiB, {work, -1});
  const auto input = builder.recv(1, 0, 7, 1_MiB);
  builder.kernels(1, 20_us, {input, -1});
  EXPECT_THAT(story_of(builder.build()),
              ::testing::MatchesRegex("kernels 0\\.0 0-30; message 0\\.1 30-([0-9]+); "
                                      "kernels 1\\.1 [0-9]+-[0-9]+; "));
}

// The host needs 20 us for each of three launches of 5 us of kernels: 60 us of launching, then the
// last kernels.
TEST(CriticalPath, IsTheHostsWhereLaunchesTakeLongerThanKernels) {
  ProgramBuilder builder;
  for (int i = 0; i < 3; ++i) builder.kernels(0, 5_us, test::kNoWaits, {.host_time = 20_us});
  EXPECT_EQ(story_of(builder.build()), "host 0.2 0-60; kernels 0.2 60-65; ");
}

// Kernels of 50 us hide the launches behind the first one.
TEST(CriticalPath, IsTheGpusWhereKernelsTakeLonger) {
  ProgramBuilder builder;
  for (int i = 0; i < 3; ++i) builder.kernels(0, 50_us, test::kNoWaits, {.host_time = 20_us});
  EXPECT_EQ(story_of(builder.build()),
            "host 0.0 0-20; kernels 0.0 20-70; kernels 0.1 70-120; kernels 0.2 120-170; ");
}

// The host waits for the first kernels and launches the second 20 us later.
TEST(CriticalPath, GoesFromTheHostToWhatItWaitedFor) {
  ProgramBuilder builder;
  builder.kernels(0, 50_us, test::kNoWaits, {.host_time = 20_us, .host_sync = true});
  builder.kernels(0, 50_us, test::kNoWaits, {.host_time = 20_us});
  EXPECT_EQ(story_of(builder.build()),
            "host 0.0 0-20; kernels 0.0 20-70; host 0.1 70-90; kernels 0.1 90-140; ");
}

// A second all-reduce waits for the first at the head of the hardware queue, and with it kernels
// that wait for neither: they start with it.
TEST(StepStory, AWaitInTheHardwareQueueIsWhatTheQueueWaitsFor) {
  ProgramBuilder builder({.tensor = 2, .pipeline = 1, .data = 1});
  const auto work = builder.kernels(0, 50_us);
  const auto sum =
      builder.all_reduce(0, GroupKind::tensor, 10_MiB, StreamKind::tensor_comm, {work, -1});
  builder.all_reduce(0, GroupKind::data, Bytes(0), StreamKind::data_comm, {sum, -1});
  builder.kernels(0, 50_us);
  TimedProgram program = builder.build();
  program.single_hardware_queue = true;
  const std::string waited =
      in_child(program, [](const TimedProgram& timed, const Timeline& timeline) {
        const RankStory rank = tell_step(timed, timeline).ranks[0];
        const OpRecord& first = timeline.ops[1];
        const Seconds exposed = rank.in(TimeClass::communication);
        return differ(exposed, first.end - first.start, timeline.step_time) ||
                       rank.in(TimeClass::host) > Seconds(0)
                   ? std::string("wrong class")
                   : std::string();
      });
  EXPECT_EQ(waited, "");
}

TEST(StepStory, TellsHostBoundFromGpuBound) {
  ProgramBuilder builder;
  for (int i = 0; i < 3; ++i) builder.kernels(0, 5_us, test::kNoWaits, {.host_time = 20_us});
  const std::string host =
      in_child(builder.build(), [](const TimedProgram& timed, const Timeline& timeline) {
        const RankStory rank = tell_step(timed, timeline).ranks[0];
        return std::to_string(std::lround(rank.in(TimeClass::host).value() * 1e6)) + " " +
               std::to_string(std::lround(rank.in(TimeClass::compute).value() * 1e6));
      });
  EXPECT_EQ(host, "50 15") << "kernels run while the host launches the next";
}

}  // namespace
}  // namespace tessera
