// Python's own opcodes by hand; tests/end_to_end/snapshot_test.py holds both directions against
// python3's pickle.
#include "sim/formats/snapshot/pickle.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string refusal(const std::string& contents) {
  try {
    const Pickle pickle(contents, "p");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Pickle, ReadsNumbersOfEveryWidth) {
  // ] ( K 5, M 0x0201, J -1, LONG1 of 6 bytes 0x7f0000000000, LONG1 of 1 byte 0xff = -1, G 1.5
  const Pickle pickle(
      "\x80\x04](K\x05M\x01\x02J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x7f\x8a\x01\xff"
      "G\x3f\xf8\x00\x00\x00\x00\x00\x00\x88N"
      "e."s,
      "p");
  const PickleView root = pickle.root();
  ASSERT_EQ(root.size(), 8U);
  EXPECT_EQ(root[0].integer(), 5);
  EXPECT_EQ(root[1].integer(), 0x0201);
  EXPECT_EQ(root[2].integer(), -1);
  EXPECT_EQ(root[3].integer(), 0x7f0000000000);
  EXPECT_EQ(root[4].integer(), -1);
  EXPECT_EQ(root[5].number(), 1.5);
  EXPECT_EQ(root[6].kind(), PickleKind::boolean);
  EXPECT_EQ(root[7].kind(), PickleKind::none);
}

TEST(Pickle, KeepsWhatIsMentionedTwiceOnce) {
  // } MEMOIZE; 'a' -> ('b' MEMOIZE, BINGET 1): the tuple holds the same text twice.
  const Pickle pickle("\x80\x04}\x94\x8c\x01"s + "a\x8c\x01" + "b\x94h\x01\x86s."s, "p");
  const auto both = pickle.root().find("a");
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0].text(), "b");
  EXPECT_EQ((*both)[1].text().data(), (*both)[0].text().data());
}

TEST(Pickle, TakesTheLastOfSeveralValuesOfAKey) {
  const Pickle pickle("\x80\x02}(X\x01\x00\x00\x00"s + "aK\x01X\x01\x00\x00\x00"s + "aK\x02u."s,
                      "p");
  EXPECT_EQ(pickle.root().find("a")->integer(), 2);
}

TEST(Pickle, RefusesWhateverWouldRunCode) {
  EXPECT_THAT(refusal("\x80\x02"s + "cos\nsystem\n."s), HasSubstr("GLOBAL, would run code"));
  EXPECT_THAT(refusal("\x80\x02"s + "cos\nsystem\n."s), HasSubstr("byte 2"));
  EXPECT_THAT(refusal("\x80\x04)R."s), HasSubstr("REDUCE"));
  EXPECT_THAT(refusal("\x80\x04\x8c\x02os\x8c\x06system\x93."s), HasSubstr("byte 14"));
  EXPECT_THAT(refusal("\x80\x04}b."s), HasSubstr("BUILD"));
}

TEST(Pickle, SaysWhereAFileIsBroken) {
  EXPECT_THAT(refusal(""), HasSubstr("byte 0"));
  EXPECT_THAT(refusal("\x80\x04X\xff\xff\xff\x7f"s), HasSubstr("ends here"));
  EXPECT_THAT(refusal("\x80\x04h\x09."s), HasSubstr("memo 9 was never set"));
  EXPECT_THAT(refusal("\x80\x04K\x01"s + "K\x02s."s), HasSubstr("no dict"));
  EXPECT_THAT(refusal("\x80\x04K\x01K\x02."s), HasSubstr("left over"));
  EXPECT_THAT(refusal("\x80\x04}(K\x01u."s), HasSubstr("key without a value"));
  EXPECT_THAT(refusal("\x80\x09."s), HasSubstr("protocol 9"));
  EXPECT_THAT(refusal("I1\n."s), HasSubstr("0x49"));
}

TEST(PickleWriter, WritesWhatThePickleReads) {
  PickleWriter writer;
  writer.begin_dict();
  writer.text("small");
  writer.integer(200);
  writer.text("negative");
  writer.integer(-3);
  writer.text("address");
  writer.integer(0x7f0000000200);
  writer.text(std::string(300, 'x'));
  writer.begin_list();
  writer.boolean(true);
  writer.end_list();
  writer.end_dict();
  const Pickle pickle(std::move(writer).finish(), "p");
  EXPECT_EQ(pickle.root().find("small")->integer(), 200);
  EXPECT_EQ(pickle.root().find("negative")->integer(), -3);
  EXPECT_EQ(pickle.root().find("address")->integer(), 0x7f0000000200);
  EXPECT_EQ(pickle.root().find(std::string(300, 'x'))->size(), 1U);
}

}  // namespace
}  // namespace tessera
