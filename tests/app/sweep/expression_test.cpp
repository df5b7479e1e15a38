#include "app/sweep/expression.h"

#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

Mark some_mark() {
  return {std::make_shared<Origin>(Origin{"sweep.yaml", ""}), 7, 3};
}

const std::map<std::string, FieldValue> kFields = {{"parallelism.tensor", 4.0},
                                                   {"parallelism.data", 2.0},
                                                   {"model", std::string("gpt2")},
                                                   {"cluster.node.gpu.memory", 85899345920.0}};

std::optional<FieldValue> look_up(const std::string& path) {
  const auto found = kFields.find(path);
  return found == kFields.end() ? std::nullopt : std::optional(found->second);
}

double number(const std::string& text) {
  return std::get<double>(*Expression(text, some_mark()).value(look_up));
}

std::string complaint(const std::string& text) {
  try {
    Expression(text, some_mark()).value(look_up);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(Expression, OperatorsBindAsInArithmetic) {
  EXPECT_EQ(number("2 + 3 * 4"), 14);
  EXPECT_EQ(number("(2 + 3) * 4"), 20);
  EXPECT_EQ(number("20 - 5 - 3"), 12);
  EXPECT_EQ(number("24 / 4 / 3"), 2);
  EXPECT_EQ(number("-2 * -3"), 6);
  EXPECT_EQ(number("17 % 5 + 1"), 3);
  EXPECT_EQ(number("1 + 1 == 2"), 1);
  EXPECT_EQ(number("1 == 2 or 2 == 2 and 1 == 1"), 1);
  EXPECT_EQ(number("not 1 == 2"), 1);
  EXPECT_EQ(number("!(1 < 2)"), 0);
}

TEST(Expression, FunctionsAndMembership) {
  EXPECT_EQ(number("max(2, min(9, 5))"), 5);
  EXPECT_EQ(number("log2(8) + floor(2.9) + ceil(2.1) + abs(-1)"), 9);
  EXPECT_EQ(number("parallelism.tensor in [1, 2, 4]"), 1);
  EXPECT_EQ(number("model in ['bert-large', \"opt-1.3b\"]"), 0);
}

TEST(Expression, FieldsAreFoundByAliasesAndListedOnce) {
  const Expression expression("parallelism.tp * parallelism.tensor * parallelism.dp", some_mark());
  EXPECT_EQ(std::get<double>(*expression.value(look_up)), 32);
  EXPECT_THAT(expression.fields(), testing::ElementsAre("parallelism.tensor", "parallelism.data"));
}

TEST(Expression, NumbersCarryUnits) {
  EXPECT_EQ(number("cluster.node.gpu.memory == 80 GiB"), 1);
  EXPECT_EQ(number("450 GB/s"), 450e9);
  EXPECT_EQ(number("450e9 / 2"), 225e9);
  EXPECT_EQ(number("1.5 us"), 1.5e-6);
  EXPECT_EQ(number("2 and 3"), 1);
}

TEST(Expression, TextsCompareWithTextsAlone) {
  EXPECT_EQ(number("model == 'gpt2'"), 1);
  EXPECT_EQ(number("model != 'gpt2'"), 0);
  EXPECT_EQ(number("model == 4"), 0);
  EXPECT_THAT(complaint("model + 1"), testing::HasSubstr("\"gpt2\" is no number"));
  EXPECT_THAT(complaint("model < 'z'"), testing::HasSubstr("is no number"));
}

TEST(Expression, AFieldThatIsNotKnownLeavesTheValueOpen) {
  const Expression expression("model.layers > 2", some_mark());
  EXPECT_FALSE(expression.holds(look_up).has_value());
}

TEST(Expression, WhatIsNoFormulaIsToldWithItsPlace) {
  for (const std::string text :
       {"", "1 +", "(1", "1)", "1 2", "min(1)", "sqrt(2)", "'open", "5 in 5", "in [1]", "1 === 2",
        "3 lightyears", "1..2", "and", "\xff"}) {
    EXPECT_THAT(complaint(text), testing::StartsWith("sweep.yaml:7:3: ")) << text;
  }
  EXPECT_THAT(complaint("tensor > 1"), testing::HasSubstr("no field tensor"));
  EXPECT_THAT(complaint("1 / (parallelism.tensor - 4)"), testing::HasSubstr("divides by zero"));
  EXPECT_THAT(complaint("log2(0)"), testing::HasSubstr("logarithm"));
}

TEST(Expression, DepthAndLengthAreBounded) {
  const std::string deep(1000, '(');
  EXPECT_THAT(complaint(deep), testing::HasSubstr("nested too deeply"));
  EXPECT_THAT(complaint(std::string(2000, '-')), testing::HasSubstr("nested too deeply"));
  EXPECT_THAT(complaint(std::string(5000, ' ')), testing::HasSubstr("longer than 4096 bytes"));
  std::string sum = "1";
  for (int i = 0; i < 2000; ++i) sum += "+1";
  EXPECT_EQ(number(sum), 2001);
}

}  // namespace
}  // namespace tessera
