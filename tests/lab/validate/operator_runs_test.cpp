#include "lab/validate/models/operator_runs.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/validate/models/operator_class.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr const char* kColumns =
    "gpu,model,mode,seq_len,batch,node,op,input_shapes,output_shape,forward_us,backward_us,"
    "grad_accumulate_us\n";

std::filesystem::path operators_file(const std::string& rows) {
  static const ScratchFolder folder;
  return folder.write("operators.csv", kColumns + rows);
}

std::string refusal_of(const std::string& rows) {
  try {
    read_operator_runs(operators_file(rows));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(OperatorRuns, RowsOfOneRunAreGatheredWhereverTheyStand) {
  const auto runs = read_operator_runs(operators_file(
      "V100,gpt2,training,8,1,n1,addmm,\"[[12],[8,4],[4,12]]\",\"(8, 12)\",10.5,20,3\n"
      "V100,gpt2,inference,8,1,n1,gelu,\"[[8,12]]\",\"(8,12)\",5,,\n"
      "V100,gpt2,training,8,1,n2,sum,\"[[8]]\",\"(8,)\",7,0,0\n"));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].run.mode, "training");
  ASSERT_EQ(runs[0].operators.size(), 2u);
  const TimedOperator& addmm = runs[0].operators[0];
  EXPECT_EQ(addmm.inputs, (std::vector<Sizes>{{12}, {8, 4}, {4, 12}}));
  EXPECT_EQ(addmm.output, (Sizes{8, 12}));
  EXPECT_DOUBLE_EQ(addmm.forward.value(), 10.5e-6);
  EXPECT_DOUBLE_EQ(addmm.backward->value(), 20e-6);
  EXPECT_EQ(runs[0].operators[1].output, (Sizes{8}));
  EXPECT_FALSE(runs[1].operators[0].backward);
}

TEST(OperatorRuns, EveryBadFieldIsNamedWithItsLine) {
  const std::string text = refusal_of(
      "V100,gpt2,training,0,1,n,add,\"[[8]]\",\"(8)\",1,2,3\n"
      "V100,gpt2,training,8,1,n,add,\"[[8],x]\",\"(8)\",1,2,3\n"
      "V100,gpt2,training,8,1,n,add,\"[[8]]\",\"(8,-1)\",1,2,3\n"
      "V100,gpt2,training,8,1,n,,\"[[8]]\",\"(8)\",,-2,inf\n");
  EXPECT_THAT(text, HasSubstr(".csv:2: seq_len = '0'"));
  EXPECT_THAT(text, HasSubstr(".csv:3: input_shapes = '[[8],x]'"));
  EXPECT_THAT(text, HasSubstr(".csv:4: output_shape = '(8,-1)'"));
  EXPECT_THAT(text, HasSubstr(".csv:5: op = ''"));
  EXPECT_THAT(text, HasSubstr(".csv:5: forward_us = ''"));
  EXPECT_THAT(text, HasSubstr(".csv:5: backward_us = '-2'"));
  EXPECT_THAT(text, HasSubstr(".csv:5: grad_accumulate_us = 'inf'"));
}

TEST(OperatorRuns, SizesThatOverflowAreRefused) {
  EXPECT_THAT(refusal_of("V100,gpt2,training,8,1,n,add,\"[[8]]\","
                         "\"(1000000000,1000000000,1000000000)\",1,2,3\n"),
              HasSubstr(":2: output_shape"));
}

TEST(OperatorRuns, AFileWithoutTheColumnsSaysWhichAreMissing) {
  const ScratchFolder folder;
  const auto file = folder.write("columns.csv", "gpu,model\nV100,gpt2\n");
  try {
    read_operator_runs(file);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("columns.csv:1: has no column forward_us"));
  }
}

OperatorClass class_of_op(const std::string& op) {
  TimedOperator timed;
  timed.op = op;
  timed.output = {1};
  return key_of(timed).operator_class;
}

TEST(OperatorClasses, FollowFromTheNamesOfFunctionsAndModules) {
  EXPECT_EQ(class_of_op("module:bert.encoder.layer.0.attention.self.query"), OperatorClass::linear);
  EXPECT_EQ(class_of_op("module:model.decoder.layers.0.fc1"), OperatorClass::linear);
  EXPECT_EQ(class_of_op("module:transformer.h.0.attn.resid_dropout"), OperatorClass::dropout);
  EXPECT_EQ(class_of_op("module:model.decoder.final_layer_norm"), OperatorClass::layer_norm);
  EXPECT_EQ(class_of_op("module:bert.embeddings.LayerNorm"), OperatorClass::layer_norm);
  EXPECT_EQ(class_of_op("module:bert.embeddings.word_embeddings"), OperatorClass::embedding);
  EXPECT_EQ(class_of_op("bmm"), OperatorClass::matmul);
  EXPECT_EQ(class_of_op("truediv"), OperatorClass::elementwise);
  EXPECT_EQ(class_of_op("where"), OperatorClass::movement);
  EXPECT_EQ(class_of_op("gelu"), OperatorClass::activation);
  EXPECT_EQ(class_of_op("cumsum"), OperatorClass::other);
}

TEST(OperatorKeys, AddmmContractsOverTheLastDimensionOfItsSecondOperand) {
  TimedOperator timed;
  timed.op = "addmm";
  timed.inputs = {{12}, {8, 4}, {4, 12}};
  timed.output = {8, 12};
  const OperatorKey key = key_of(timed);
  EXPECT_EQ(key.elements, 8 * 12);
  EXPECT_EQ(key.contraction, 4);
}

}  // namespace
}  // namespace tessera
