#include "sim/config/files/yaml_tree.h"

#include <memory>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

YamlNode parse(const std::string& text) {
  return parse_yaml(text, std::make_shared<Origin>(Origin{"f", ""}));
}

std::string nested(int levels) {
  const auto count = static_cast<std::size_t>(levels);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(YamlTree, ValuesKnowTheirLineAndColumn) {
  const YamlNode root = parse("a: 1\nb:\n  c: [x, y]\n");
  EXPECT_EQ(root.find("b")->mark.text(), "f:2:1");
  EXPECT_EQ(root.find("b")->value.find("c")->value.items[1].mark.text(), "f:3:10");
}

TEST(YamlTree, QuotesMakeText) {
  EXPECT_TRUE(parse("a: \"1\"").find("a")->value.quoted);
  EXPECT_FALSE(parse("a: 1").find("a")->value.quoted);
}

TEST(YamlTree, DuplicatesAreKept) {
  EXPECT_EQ(parse("a: 1\na: 2\n").entries.size(), 2u);
}

TEST(YamlTree, AnAliasRepeatsTheWholeValue) {
  const YamlNode root = parse("a: &x {b: [1, 2]}\nc: *x\n");
  EXPECT_EQ(root.find("c")->value.find("b")->value.items[1].text, "2");
}

TEST(YamlTree, SixtyFourLevelsAreTheLimit) {
  EXPECT_NO_THROW(parse(nested(64)));
  EXPECT_THROW(parse(nested(65)), InputError);
}

TEST(YamlTree, AliasesDoNotNestDeeperThanTheLimit) {
  // 40 levels below an anchor, repeated below 24 and below 25 others.
  const std::string anchor = "a: &x " + nested(39) + "\n";
  const auto repeated = [&](int levels) {
    const auto count = static_cast<std::size_t>(levels);
    return anchor + "b: " + std::string(count, '[') + "*x" + std::string(count, ']');
  };
  EXPECT_NO_THROW(parse(repeated(24)));
  EXPECT_THROW(parse(repeated(25)), InputError);
}

TEST(YamlTree, AliasesRepeatAHundredThousandValuesAtMost) {
  // The anchored list is 1000 values with itself: 100 copies are the limit.
  std::string text = "a: &x [";
  for (int i = 0; i < 998; ++i) text += "1,";
  text += "1]\nb: [";
  for (int i = 0; i < 99; ++i) text += "*x,";
  EXPECT_NO_THROW(parse(text + "*x]"));
  EXPECT_THROW(parse(text + "*x,*x]"), InputError);
}

TEST(YamlTree, AnAliasInsideItsOwnValueIsRefused) {
  EXPECT_THROW(parse("a: &x [*x]"), InputError);
  EXPECT_THROW(parse("&x a: {b: *y}"), InputError);
}

}  // namespace
}  // namespace tessera
