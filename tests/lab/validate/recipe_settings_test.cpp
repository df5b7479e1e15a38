// What columns of recipes become.
#include "lab/validate/runs/recipe_settings.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(LayersOfLetters, AreCountedChunkByChunk) {
  EXPECT_EQ(layers_of_letters("Ett|tt|tttmL"), "[2, 2, 3]");
  EXPECT_EQ(layers_of_letters("Et*3|(tt|)*29m|L"), [] {
    std::string list = "[3";
    for (int chunk = 0; chunk < 29; ++chunk) list += ", 2";
    return list + ", 0, 0]";
  }());
  EXPECT_EQ(layers_of_letters("E|(t|)*2L"), "[0, 1, 1, 0]");
}

TEST(LayersOfLetters, OfOtherLettersAreNone) {
  EXPECT_EQ(layers_of_letters("Ex|L"), "");
  EXPECT_EQ(layers_of_letters("Et)|L"), "");
}

}  // namespace
}  // namespace tessera
