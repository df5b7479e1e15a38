#include <type_traits>

#include "hw/units/id.h"
#include "hw/units/input_error.h"
#include "hw/units/precision.h"
#include "hw/units/quantity.h"

namespace tessera {
namespace {

TEST(Precision, NamesParseBack) {
  for (const Precision precision : kAllPrecisions) {
    EXPECT_EQ(parse_precision(name_of(precision)), precision);
  }
}

TEST(Precision, UnknownNamesListTheAcceptedOnes) {
  try {
    parse_precision("float32");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown precision \"float32\"; use one of fp32, tf32, bf16, fp16, fp8, int64, "
                 "int8, fp4");
  }
}

TEST(InputError, ListsEveryProblemOnALineOfItsOwn) {
  const InputError error({{"a.yaml:1:2", "x = 5", "use 4"}, {"", "no file", ""}});
  EXPECT_STREQ(error.what(), "a.yaml:1:2: x = 5; use 4\nno file");
  EXPECT_EQ(error.problems().size(), 2u);
}

TEST(Quantity, SizeOverBandwidthIsTime) {
  EXPECT_EQ((900_MiB / (300_MiB / 1_s)).value(), 3.0);
  EXPECT_EQ(6_us / 3_us, 2.0);
}

TEST(Quantity, DimensionsDoNotMix) {
  static_assert(!std::is_convertible_v<Bytes, Seconds>);
  static_assert(!std::is_convertible_v<double, Seconds>);
  static_assert(!std::is_convertible_v<RankId, LinkId>);
}

TEST(Id, DefaultIsInvalid) {
  EXPECT_FALSE(LinkId().valid());
  EXPECT_TRUE(LinkId(0).valid());
}

}  // namespace
}  // namespace tessera
