#include "app/import/job/layer_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(LayerList, IsWhatPythonMakesOfIt) {
  EXPECT_THAT(python_list("[1, 0]"), Optional(ElementsAre(1, 0)));
  EXPECT_THAT(python_list("([0]*2+[1]*3)"), Optional(ElementsAre(0, 0, 1, 1, 1)));
  EXPECT_THAT(python_list("2*[1,0] + [1]"), Optional(ElementsAre(1, 0, 1, 0, 1)));
  EXPECT_THAT(python_list("'([1]+[0])*2'"), Optional(ElementsAre(1, 0, 1, 0)));
  EXPECT_THAT(python_list("[]"), Optional(ElementsAre()));
}

TEST(LayerList, OthersAreNone) {
  for (const char* text : {"", "3", "[1", "[1]]", "[1]*[2]", "2*3", "[1]+2", "[a]", "[1]*", "([1]",
                           "[1]*99999", "-1", "[1,,2]"})
    EXPECT_FALSE(python_list(text).has_value()) << text;
  EXPECT_FALSE(python_list(std::string(10'000, '(')).has_value()) << "nests too deeply";
}

TEST(LayerList, WholeNumbers) {
  EXPECT_THAT(whole_number("12"), Optional(12));
  for (const char* text : {"", "1.5", "-1", "12345678901", "a"})
    EXPECT_FALSE(whole_number(text).has_value()) << text;
}

}  // namespace
}  // namespace tessera
