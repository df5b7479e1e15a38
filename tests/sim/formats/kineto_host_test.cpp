#include "sim/formats/kineto_host.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

/// An event of the host; times in microseconds.
std::string host_event(const std::string& category, const std::string& name, double begin,
                       double duration, int thread = 1) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
         R"(", "pid": 1, "tid": )" + std::to_string(thread) + R"(, "ts": )" +
         std::to_string(begin) + R"(, "dur": )" + std::to_string(duration) + "}";
}
std::string op(const std::string& name, double begin, double duration, int thread = 1) {
  return host_event("cpu_op", name, begin, duration, thread);
}

HostTrace read(const std::vector<std::string>& events) {
  const ScratchFolder folder;
  std::string text = R"({"traceEvents": [)";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i > 0 ? ",\n" : "") + events[i];
  return read_host_trace(folder.write("trace.json", text + "]}"));
}

double us(Seconds time) {
  return time.value() * 1e6;
}

TEST(HostTrace, ACallTakesTheTimeToTheNextOfItsThread) {
  // linear holds t and addmm: one call of 10 us. Then add: 20 us. What follows view is not known.
  const HostTrace trace =
      read({op("aten::linear", 100, 8), op("aten::t", 101, 1), op("aten::addmm", 103, 4),
            op("aten::add", 110, 5), op("aten::view", 130, 1)});
  EXPECT_EQ(trace.operators.calls, 2);
  EXPECT_DOUBLE_EQ(us(trace.operators.mean), 15);
  EXPECT_DOUBLE_EQ(us(trace.operators.median), 20);
  EXPECT_EQ(trace.collectives.calls, 0);
  EXPECT_EQ(trace.steps, 0);
}

TEST(HostTrace, CollectivesAndMessagesAreKindsOfTheirOwn) {
  const HostTrace trace =
      read({op("aten::mm", 0, 2), op("c10d::allreduce_", 10, 20), op("aten::mm", 40, 2),
            op("c10d::send", 50, 9), op("c10d::recv_", 65, 9), op("aten::mm", 90, 2),
            op("_c10d_functional::all_gather_into_tensor", 100, 9),
            op("c10d::_allgather_base_", 102, 5), op("aten::mm", 150, 1)});
  EXPECT_EQ(trace.operators.calls, 3);
  EXPECT_DOUBLE_EQ(us(trace.operators.mean), 10);
  EXPECT_EQ(trace.collectives.calls, 2);
  EXPECT_DOUBLE_EQ(us(trace.collectives.mean), (30 + 50) / 2.0);
  EXPECT_EQ(trace.messages.calls, 2);
  EXPECT_DOUBLE_EQ(us(trace.messages.mean), (15 + 25) / 2.0);
}

TEST(HostTrace, ContainersOfAutogradAreNoCalls) {
  const HostTrace trace =
      read({op("autograd::engine::evaluate_function: MmBackward0", 0, 30), op("MmBackward0", 2, 26),
            op("aten::mm", 4, 3), op("aten::mm", 12, 3)});
  EXPECT_EQ(trace.operators.calls, 1);
  EXPECT_DOUBLE_EQ(us(trace.operators.mean), 8);
}

TEST(HostTrace, WhatRunsInsideACompiledRegionIsCompiled) {
  const HostTrace trace =
      read({op("aten::view", 0, 1), op("Torch-Compiled Region: 0/0", 10, 30),
            op("triton_poi_fused_add_0", 12, 3), op("aten::mm", 16, 3),
            op("triton_per_fused_1", 24, 3), op("aten::view", 50, 1), op("aten::view", 60, 1)});
  EXPECT_EQ(trace.compiled.calls, 3);  // 4, 8 and 26 us
  EXPECT_NEAR(us(trace.compiled.mean), 38 / 3.0, 1e-9);
  EXPECT_EQ(trace.operators.calls, 2);  // 12 and 10 us
}

TEST(HostTrace, LeavesOutWhereTheHostWaited) {
  std::vector<std::string> events{op("aten::mm", 0, 2),
                                  op("aten::item", 10, 500),
                                  host_event("cuda_runtime", "cudaStreamSynchronize", 12, 490),
                                  op("aten::mm", 520, 2),
                                  op("aten::empty", 530, 100),
                                  host_event("cuda_runtime", "cudaMalloc", 531, 90),
                                  op("aten::mm", 640, 300),
                                  op("aten::mm", 950, 2)};
  // Seven launches of 4 us, and one that found the queue full: beyond 50 us and 20 times their
  // median.
  for (int i = 0; i < 7; ++i)
    events.push_back(host_event("cuda_runtime", "cudaLaunchKernel", 0.1 * i, 4));
  events.push_back(host_event("cuda_runtime", "cudaLaunchKernel", 645, 290));
  const HostTrace trace = read(events);
  EXPECT_EQ(trace.operators.calls, 2);  // behind the first two mm
  EXPECT_DOUBLE_EQ(us(trace.operators.mean), 10);
  EXPECT_EQ(trace.waited, 3);
}

TEST(HostTrace, ThreadsThatTakeTurnsAreNotAddedUp) {
  // Forward in thread 1; backward in thread 2 while thread 1 waits; then the update in thread 1.
  const HostTrace trace =
      read({op("aten::mm", 0, 2, 1), op("aten::mm", 10, 2, 1), op("aten::mm", 100, 2, 2),
            op("aten::mm", 110, 2, 2), op("aten::add", 500, 2, 1), op("aten::add", 510, 2, 1)});
  EXPECT_EQ(trace.operators.calls, 3);
  EXPECT_DOUBLE_EQ(us(trace.operators.mean), 10);
  EXPECT_EQ(trace.waited, 2);
}

TEST(HostTrace, CountsMarkedStepsAlone) {
  const HostTrace trace =
      read({op("aten::mm", 0, 2), op("aten::mm", 90, 2),
            host_event("user_annotation", "ProfilerStep#1", 100, 100), op("aten::mm", 110, 2),
            op("aten::mm", 130, 2), host_event("user_annotation", "ProfilerStep#2", 200, 100),
            op("aten::mm", 210, 2), op("aten::mm", 230, 2), op("aten::mm", 400, 2),
            op("aten::mm", 500, 2)});
  EXPECT_EQ(trace.steps, 2);
  // Two of 20 us; the last of step 2 is followed by one behind it, 170 us later.
  EXPECT_EQ(trace.operators.calls, 3);
  EXPECT_DOUBLE_EQ(us(trace.operators.median), 20);
}

TEST(HostTrace, RefusesATraceWithoutOperators) {
  try {
    read({host_event("kernel", "gemm", 0, 5)});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("ProfilerActivity.CPU"));
  }
}

}  // namespace
}  // namespace tessera
