#include "sim/config/suggest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

const std::vector<std::string> kWords = {"tensor", "pipeline", "data"};

TEST(Suggest, DistanceCountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(spelling_distance("tensor", "tensor"), 0);
  EXPECT_EQ(spelling_distance("tenor", "tensor"), 1);    // s inserted
  EXPECT_EQ(spelling_distance("tensors", "tensor"), 1);  // s deleted
  EXPECT_EQ(spelling_distance("tensar", "tensor"), 1);   // a replaced
  EXPECT_EQ(spelling_distance("tesnor", "tensor"), 1);   // n and s swapped
  EXPECT_EQ(spelling_distance("", "data"), 4);
}

TEST(Suggest, DistanceIsSymmetric) {
  EXPECT_EQ(spelling_distance("pipeline", "tensor"), spelling_distance("tensor", "pipeline"));
}

TEST(Suggest, CaseAndHyphensWeighLessThanLetters) {
  EXPECT_EQ(spelling_distance("Gpt2-large", "gpt2_large"), 0.5);
}

TEST(Suggest, TheNearestWordIsProposed) {
  EXPECT_EQ(nearest("tensr", kWords), "tensor");
  EXPECT_EQ(nearest("Pipelines", kWords), "pipeline");
  EXPECT_EQ(nearest("pipe", kWords), "pipeline");  // its beginning
}

TEST(Suggest, TheBeginningOfSeveralWordsGetsThoseAlone) {
  const std::vector<std::string> gpus{"A100", "H100-NVL", "H100-PCIe", "H200"};
  EXPECT_EQ(suggestion("h100", gpus), "use one of H100-NVL or H100-PCIe");
  EXPECT_EQ(suggestion("A10", gpus), "did you mean A100?");
  EXPECT_TRUE(completions("H1", gpus).empty());  // two letters begin too much
}

TEST(Suggest, AWholePartOfANameIsNearerThanAWrongLetter) {
  const std::vector<std::string> gpus{"H20", "H200-SXM5-141GB"};
  EXPECT_EQ(suggestion("H200", gpus), "did you mean H200-SXM5-141GB?");
  EXPECT_EQ(suggestion("h200", gpus), "did you mean H200-SXM5-141GB?");
  EXPECT_EQ(nearest("H20", gpus), "H20");
}

TEST(Suggest, AWordThatResemblesNothingGetsTheList) {
  EXPECT_EQ(nearest("zero", kWords), "");
  EXPECT_EQ(suggestion("zero", kWords), "use one of tensor, pipeline or data");
}

TEST(Suggest, AListLongerThanFourLinesSaysHowManyMoreThereAre) {
  std::vector<std::string> words;
  for (int i = 0; i < 40; ++i) words.push_back("word" + std::to_string(100 + i));
  const std::string text = suggestion("zzzzzzzz", words);
  EXPECT_TRUE(text.starts_with("use one of word100, word101, ")) << text;
  // A word and its comma take 9 bytes: 33 of them, and the last without comma, within 300.
  EXPECT_TRUE(text.ends_with(", word132 and 7 more")) << text;
  words.resize(33);
  EXPECT_TRUE(suggestion("zzzzzzzz", words).ends_with(", word131 or word132"));
}

TEST(Suggest, AListThatIsNotWholeNamesThoseFirstThatBeginAlike) {
  std::vector<std::string> words;
  for (int i = 0; i < 40; ++i) words.push_back("word" + std::to_string(100 + i));
  words.push_back("gpt3-175b_1024xh100_tp8_pp8");
  EXPECT_TRUE(suggestion("gpt3-13b_a100", words)
                  .starts_with("use one of gpt3-175b_1024xh100_tp8_pp8, word100, "));
}

TEST(Suggest, APartInTheMiddleOfWordsGetsThoseAlone) {
  const std::vector<std::string> words{"dgx-a100", "efa-p4d-x4", "rtx-4090-pcie-1",
                                       "rtx-4090-pcie-4"};
  EXPECT_EQ(suggestion("P4D", words), "did you mean efa-p4d-x4?");
  EXPECT_EQ(suggestion("4090", words), "use one of rtx-4090-pcie-1 or rtx-4090-pcie-4");
}

TEST(Suggest, LongTextIsComparedWithNothing) {
  EXPECT_EQ(nearest(std::string(1 << 20, 't'), kWords), "");
}

}  // namespace
}  // namespace tessera
