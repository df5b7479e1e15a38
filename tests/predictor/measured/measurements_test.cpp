#include "predictor/measured/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

constexpr const char* kHeader =
    "gpu,op,split,batch,m,n,k,rows,cols,latency_us,kernel_name,grid_x,grid_y,grid_z\n";

std::string under_header(const char* rows) {
  std::string text = kHeader;
  text += rows;
  return text;
}

std::vector<std::string> problems_of(const std::string& text) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.csv", text);
  try {
    read_measurements(path);
  } catch (const InputError& error) {
    std::vector<std::string> texts;
    for (const Problem& problem : error.problems()) {
      EXPECT_EQ(problem.where.find(path.string()), 0u);
      texts.push_back(problem.where.substr(path.string().size()) + " " + problem.what);
    }
    return texts;
  }
  return {};
}

TEST(Measurements, ReadsProductsAndRowsWithQuotedNames) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.csv", under_header("T4,linear,train,2,58,141,13,,,46.08,volta_sgemm_32x128_tn,5,2,3\r\n"
                               "P4,add,test,,,,,127,168,26.5,\"kernel<4, add<float>, 3>\",42,1,1\n"
                               "P4,softmax,test,,,,,7,8,,,,,\n"));
  const MeasurementFile file = read_measurements(path);
  ASSERT_EQ(file.rows.size(), 3u);
  EXPECT_EQ(file.gpus, (std::vector<std::string>{"T4", "P4"}));
  EXPECT_EQ(file.rows[0].k, 13);
  EXPECT_EQ(file.rows[0].tile_a, 32);
  EXPECT_EQ(file.rows[0].tile_b, 128);
  EXPECT_EQ(file.rows[0].blocks, 30);
  EXPECT_TRUE(file.rows[0].train);
  EXPECT_EQ(file.rows[1].op, MeasuredOp::add);
  EXPECT_DOUBLE_EQ(file.rows[1].latency_us, 26.5);
  EXPECT_EQ(file.rows[2].latency_us, 0.0);
}

TEST(Measurements, MalformedRowsAreReportedTogetherWithFileAndLine) {
  const auto problems =
      problems_of(under_header("T4,linear,train,1,58,141,13,,,46.08,,1,1,1\n"
                               "T4,linear,train,1,58,x,13,,,46.08,,1,1,1\n"
                               "T4,conv,train,1,58,1,13,,,46.08,,1,1,1\n"
                               "T4,add,train,,,,,0,4,46.08,,1,1,1\n"
                               "T4,add,train,,,,,4,4,-3,,1,1,1\n"
                               "T4,add,train,,,,,4,4,nan,,1,1,1\n"
                               "T4,add\n"));
  EXPECT_EQ(problems,
            (std::vector<std::string>{
                ":3 n = 'x' is not a size", ":4 unknown op 'conv'", ":5 rows = '0' is not a size",
                ":6 latency_us = '-3' is not a duration", ":7 latency_us = 'nan' is not a duration",
                ":8 2 fields where the header has 14"}));
}

TEST(Measurements, MissingColumnsAreNamed) {
  EXPECT_EQ(problems_of("gpu,op,batch,m,n,k,rows\n"),
            (std::vector<std::string>{":1 column cols is missing"}));
}

constexpr const char* kConvolutionColumns =
    "gpu,op,split,batch,in_channels,out_channels,kernel_size,input_size,stride,padding,"
    "latency_us,kernel_name\n";

std::string under_convolution_header(const char* rows) {
  std::string text = kConvolutionColumns;
  text += rows;
  return text;
}

TEST(Measurements, TheMarkOfSpreadsheetsIsNoPartOfTheFirstColumn) {
  const ScratchFolder folder;
  const std::string text = under_header("P4,add,test,,,,,127,168,26.5,,,,\n");
  const auto file = read_measurements(folder.write("rows.csv", "\xEF\xBB\xBF" + text));
  ASSERT_EQ(file.rows.size(), 1u);
  EXPECT_EQ(file.gpus, std::vector<std::string>{"P4"});
}

TEST(Measurements, HeadersThatSayTwoThingsAreRefused) {
  using ::testing::ElementsAre;
  EXPECT_THAT(problems_of("gpu;dtype;m;n;k;latency_us\nT4;fp16;8;8;8;3\n"),
              ElementsAre(":1 separates its columns by semicolons or tabs"));
  EXPECT_THAT(problems_of("gpu,dtype,m,n,k,latency_us,m\nT4,fp16,8,8,8,3,9\n"),
              ElementsAre(":1 names the column m twice"));
  EXPECT_THAT(problems_of("gpu,dtype,m,n,k,latency_ms\nT4,fp16,8,8,8,3\n"),
              ElementsAre(":1 column latency_ms is not read"));
}

TEST(Measurements, ReadsConvolutions) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.csv", under_convolution_header("T4,conv2d,train,38,893,326,3,5,1,1,1069.92,\n"
                                           "P4,conv2d,test,2,3,64,7,224,2,3,,\n"
                                           "T4,conv2d,train,1,2,3,1,9,1,0,80.5,\n"));
  const MeasurementFile file = read_measurements(path);
  ASSERT_EQ(file.rows.size(), 3u);
  EXPECT_EQ(name_of(file.rows[0].op), "conv2d");
  EXPECT_EQ(file.rows[0].earlier, 0);
  EXPECT_EQ(file.rows[1].earlier, 0);
  EXPECT_EQ(file.rows[2].earlier, 1);  // of the same GPU
  const Kernel stem = kernel_of(file.rows[1]);
  EXPECT_EQ(stem.kind, KernelKind::convolution);
  EXPECT_EQ(stem.m, 2 * 112 * 112);
  EXPECT_EQ(stem.n, 64);
  EXPECT_EQ(stem.k, 3 * 49);
}

TEST(Measurements, MalformedConvolutionsAreReportedWithFileAndLine) {
  EXPECT_EQ(
      problems_of(under_convolution_header("T4,conv2d,train,1,3,8,3,5,1,1,90,\n"
                                           "T4,conv2d,train,1,3,8,0,5,1,1,90,\n"
                                           "T4,conv2d,train,1,3,8,3,5,0,1,90,\n"
                                           "T4,conv2d,train,1,3,8,3,5,1,-1,90,\n"
                                           "T4,conv2d,train,1,3,8,8,5,1,1,90,\n"
                                           "T4,conv2d,train,1,x,8,3,5,1,1,90,\n"
                                           "T4,conv2d,train,1000000000,1000000000,8,3,5,1,1,"
                                           "90,\n"
                                           "T4,linear,train,1,3,8,3,5,1,1,90,\n")),
      (std::vector<std::string>{":3 kernel_size = '0' is not a size",
                                ":4 stride = '0' is not a size", ":5 padding = '-1' is not a size",
                                ":6 a window of 8 does not fit into the padded image",
                                ":7 in_channels = 'x' is not a size",
                                ":8 the tensors of the convolution hold more than 2^58 elements",
                                ":9 m = '' is not a size"}));
  EXPECT_EQ(problems_of("gpu,op,batch,in_channels,out_channels,kernel_size,input_size,stride\n"),
            (std::vector<std::string>{":1 column padding is missing"}));
  EXPECT_EQ(problems_of(under_header("T4,conv2d,train,1,,,,,,46,,1,1,1\n")),
            (std::vector<std::string>{":2 in_channels = '' is not a size"}));
}

TEST(Measurements, AFileOfNonsenseStopsAtTwentyProblems) {
  std::string text = kHeader;
  for (int i = 0; i < 1000; ++i) text += "nonsense\n";
  EXPECT_EQ(problems_of(text).size(), 20u);
}

TEST(Measurements, KernelsCarryFlopsAndCompulsoryBytes) {
  KernelMeasurement row;
  row.op = MeasuredOp::linear;
  row.batch = 2;
  row.m = 10;
  row.n = 20;
  row.k = 30;
  const Kernel linear = kernel_of(row);
  EXPECT_EQ(linear.m, 20);  // the batch of a linear layer is more rows
  EXPECT_EQ(linear.flops.value(), 2.0 * 20 * 20 * 30);
  EXPECT_EQ(linear.bytes_read.value(), 4 * (20 * 30 + 30 * 20 + 20));
  row.op = MeasuredOp::bmm;
  EXPECT_EQ(kernel_of(row).bytes().value(), 4 * 2 * (10 * 30 + 30 * 20 + 10 * 20));
  row.op = MeasuredOp::add;
  row.rows = 5;
  row.cols = 6;
  EXPECT_EQ(kernel_of(row).bytes().value(), 12 * 30);
  EXPECT_EQ(kernel_of(row).flops.value(), 30);
  row.op = MeasuredOp::gelu;
  EXPECT_EQ(kernel_of(row).bytes().value(), 8 * 30);
  EXPECT_EQ(kernel_of(row).flops.value(), 30);  // the weights were fitted to these
}

TEST(Measurements, TheWayOfTimingIsIsolatedWhereNothingIsSaid) {
  const ScratchFolder folder;
  const MeasurementFile file = read_measurements(
      folder.write("rows.csv",
                   "gpu,op,split,batch,m,n,k,rows,cols,latency_us,timing\n"
                   "T4,add,train,,,,,4,4,30,\nT4,add,train,,,,,4,4,30,isolated\n"
                   "T4,add,train,,,,,4,4,3,graph\nT4,add,test,,,,,4,4,3,queue\n"));
  ASSERT_EQ(file.rows.size(), 4u);
  EXPECT_EQ(file.rows[0].timing, CallTiming::isolated);
  EXPECT_EQ(file.rows[1].timing, CallTiming::isolated);
  EXPECT_EQ(file.rows[2].timing, CallTiming::graph);
  EXPECT_EQ(file.rows[3].timing, CallTiming::queue);
  EXPECT_TRUE(file.rows[0].train);
  EXPECT_FALSE(file.rows[2].train);  // training fits the floors of isolated calls
  EXPECT_TRUE(file.rows[3].test);
  EXPECT_EQ(problems_of("gpu,op,batch,m,n,k,rows,cols,timing\nT4,add,,,,,4,4,fast\n"),
            (std::vector<std::string>{":2 timing = 'fast' is not known"}));
}

TEST(Measurements, AFileWithADtypeInsteadOfAnOpHoldsProductsFromAGraph) {
  const ScratchFolder folder;
  const MeasurementFile file = read_measurements(
      folder.write("rows.csv",
                   "gpu,dtype,m,n,k,latency_us,stack,source\n"
                   "L4,bf16,81,3584,8192,56.32,sglang,x\nL4,fp32,2,3,4,5,torch,y\n"));
  ASSERT_EQ(file.rows.size(), 2u);
  EXPECT_EQ(file.rows[0].op, MeasuredOp::linear);
  EXPECT_EQ(file.rows[0].precision, Precision::bf16);
  EXPECT_EQ(file.rows[0].timing, CallTiming::graph);
  EXPECT_EQ(kernel_of(file.rows[0]).bytes_written.value(), 2 * 81 * 3584);
  EXPECT_EQ(file.rows[1].precision, Precision::fp32);
  EXPECT_EQ(kernel_of(file.rows[1]).m, 2);
  EXPECT_EQ(problems_of("gpu,dtype,m,n,k\nL4,fp33,1,1,1\n"),
            (std::vector<std::string>{":2 dtype = 'fp33' is not known"}));
  EXPECT_EQ(problems_of("gpu,dtype,m,n\n"), (std::vector<std::string>{":1 column k is missing"}));
}

TEST(Fnv1a, HasThePublishedValues) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ULL);
}

}  // namespace
}  // namespace tessera
