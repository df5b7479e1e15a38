#include "sim/formats/kineto.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "hw/units/input_error.h"
#include "sim/formats/output_file.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

TEST(KernelNames, SayWhatAKernelDoes) {
  const auto expect = [](TraceOpClass op_class, const char* name) {
    EXPECT_EQ(class_of_kernel_name(name), op_class) << name;
  };
  expect(TraceOpClass::product, "ampere_sgemm_128x64_nn");
  expect(TraceOpClass::product, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT");
  expect(TraceOpClass::product, "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>");
  expect(TraceOpClass::product, "void splitKreduce_kernel<32, 16, int>");
  expect(TraceOpClass::attention, "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>");
  expect(TraceOpClass::attention, "fmha_cutlassB_bf16_aligned_64x64_k64_sm80");
  expect(TraceOpClass::softmax, "void (anonymous namespace)::softmax_warp_forward<float>");
  expect(TraceOpClass::normalization, "void at::native::vectorized_layer_norm_kernel<float>");
  expect(TraceOpClass::elementwise,
         "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>");
  expect(TraceOpClass::elementwise, "Memcpy DtoD (Device -> Device)");
  expect(TraceOpClass::reduction, "void at::native::reduce_kernel<512, 1, at::native::ReduceOp>");
  expect(TraceOpClass::gather_scatter, "void at::native::index_elementwise_kernel<128, 4>");
  expect(TraceOpClass::multi_tensor, "void at::native::multi_tensor_apply_kernel<AdamFunctor>");
  expect(TraceOpClass::communication, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)");
  expect(TraceOpClass::other, "my_kernel");
}

class Traces : public ::testing::Test {
 protected:
  KinetoTrace read(const std::string& events) {
    std::ofstream(path_) << "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}], "
                            "\"traceEvents\": ["
                         << events << "], \"traceName\": \"t\"}";
    return read_kineto(path_);
  }
  ScratchFolder folder_;
  std::filesystem::path path_ = folder_.path() / "kineto.json.gz";
};

std::string event(const char* category, const char* name, double begin_us, double duration_us,
                  int thread, int correlation) {
  return std::string(R"({"ph": "X", "cat": ")") + category + R"(", "name": ")" + name +
         R"(", "pid": 1, "tid": )" + std::to_string(thread) + R"(, "ts": )" +
         std::to_string(begin_us) + R"(, "dur": )" + std::to_string(duration_us) +
         R"(, "args": {"correlation": )" + std::to_string(correlation) + "}}";
}

const std::string kStep =
    event("cuda_runtime", "cudaLaunchKernel", 100, 2, 7, 1) + "," +
    event("cuda_runtime", "cudaLaunchKernel", 120, 2, 8, 2) + "," +
    event("cuda_runtime", "cudaLaunchKernel", 150, 2, 7, 3) + "," +
    event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 110, 30, 8, 0) + "," +
    event("user_annotation", "Optimizer.step#Adam.step", 145, 10, 7, 0) + "," +
    event("kernel", "sgemm", 200, 10, 20, 1) + "," + event("kernel", "sgemm", 210, 20, 20, 2) +
    "," + event("kernel", "multi_tensor_apply", 240, 10, 20, 3) +
    R"(,{"ph": "M", "name": "process_name", "args": {"name": "python"}})";

TEST_F(Traces, PhasesFollowFromTheThreadAndTheRangeOfTheLaunch) {
  const KinetoTrace trace = read(kStep);
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(trace.kernels[0].phase, TracePhase::forward);
  EXPECT_EQ(trace.kernels[1].phase, TracePhase::backward);
  EXPECT_EQ(trace.kernels[2].phase, TracePhase::optimizer);
  EXPECT_EQ(trace.steps, 1);
  EXPECT_NEAR(trace.window.value(), 50e-6, 1e-12) << "first to last kernel";
  EXPECT_NEAR(trace.kernels[1].start.value(), 10e-6, 1e-12);
}

TEST_F(Traces, MarkedStepsBoundTheWindowAndKernelsOutsideAreLeftOut) {
  const KinetoTrace trace =
      read(kStep + "," + event("gpu_user_annotation", "ProfilerStep#1", 205, 25, 20, 0) + "," +
           event("gpu_user_annotation", "ProfilerStep#2", 230, 35, 20, 0) + "," +
           event("user_annotation", "ProfilerStep#1", 0, 25, 7, 0));
  EXPECT_EQ(trace.steps, 2);
  EXPECT_NEAR(trace.window.value(), 60e-6, 1e-12);
  EXPECT_EQ(trace.note, "");
  EXPECT_EQ(trace.kernels.size(), 2u) << "the first began before the steps";
}

/// Kernels of one stream, 10 us each; 5 us lie between two steps, "|".
std::string stream_of(const std::string& names) {
  std::string events;
  double at = 100;
  for (const char name : names) {
    if (name == '|') at += 5;
    if (name == '|') continue;
    events += (events.empty() ? "" : ",") +
              event("kernel", (std::string("kernel_") + name).c_str(), at, 10, 7, 0);
    at += 10;
  }
  return events;
}

TEST_F(Traces, WithoutMarksAStepIsWhatTheStreamRepeats) {
  const KinetoTrace trace = read(stream_of("xy|abbc|abbc|abbc"));
  EXPECT_EQ(trace.steps, 2) << "from the first kernel of a step to that of the last one";
  EXPECT_NEAR(trace.window.value(), 2 * 45e-6, 1e-12);
  EXPECT_EQ(trace.kernels.size(), 8u);
  EXPECT_EQ(trace.note, "no ProfilerStep: 2 of 3 repetitions of 4 kernels count as steps");
}

TEST_F(Traces, LayersThatRepeatAreNoSteps) {
  const KinetoTrace trace = read(stream_of("efghdcdcdcdcdcdc"));
  EXPECT_EQ(trace.steps, 1);
  EXPECT_EQ(trace.kernels.size(), 16u);
  EXPECT_NE(trace.note.find("those of the start among them"), std::string::npos);
}

TEST_F(Traces, WithoutMarksStepsLieBetweenOptimizerSteps) {
  std::string events;
  for (int step = 0; step < 3; ++step) {
    const double at = 1000.0 * (step == 0 ? 0 : step + 2);  // the first one is slow
    const int id = 10 * step;
    events += (events.empty() ? "" : ",") +
              event("cuda_runtime", "cudaLaunchKernel", at, 2, 7, id + 1) + "," +
              event("cuda_runtime", "cudaLaunchKernel", at + 50, 2, 7, id + 2) + "," +
              event("user_annotation", "Optimizer.step#Adam.step", at + 40, 20, 7, 0) + "," +
              event("kernel", step == 0 ? "first_sgemm" : "sgemm", at + 100, 300, 20, id + 1) +
              "," + event("kernel", "multi_tensor_apply", at + 500, 100, 20, id + 2);
  }
  const KinetoTrace trace = read(events);
  EXPECT_EQ(trace.steps, 2);
  EXPECT_NEAR(trace.window.value(), (4600 - 600) * 1e-6, 1e-12);
  EXPECT_EQ(trace.kernels.size(), 4u);
  EXPECT_NE(trace.note.find("2 steps between ends of optimizer steps"), std::string::npos);
}

TEST_F(Traces, AreReadCompressedToo) {
  write_output_file(path_, "{\"traceEvents\": [" + kStep + "]}");
  EXPECT_EQ(read_kineto(path_).kernels.size(), 3u);
}

TEST_F(Traces, WhatIsNoneIsNamed) {
  const auto refuse = [&](const std::string& text) {
    std::ofstream(path_) << text;
    EXPECT_THROW(read_kineto(path_), InputError) << text;
  };
  refuse("");
  refuse("{\"traceEvents\": [{]}");
  refuse("{\"traceEvents\": []}");
  refuse("{\"traceEvents\": [" + event("cpu_op", "aten::mm", 0, 1, 1, 1) + "]}");
  refuse(
      "\x1f\x8b"
      "broken");
  EXPECT_THROW(read_kineto("/nowhere.json"), InputError);
  // Fields of the wrong type are read as absent.
  EXPECT_EQ(read(R"({"ph": "X", "cat": "kernel", "name": 5, "ts": "x", "dur": 4, "args": [1]})")
                .kernels.size(),
            1u);
}

}  // namespace
}  // namespace tessera
