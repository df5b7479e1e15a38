#include "hw/units/text.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

using testing::HasSubstr;

Problem problem_with(std::string_view text, Dimension dimension) {
  try {
    parse_quantity(text, dimension);
  } catch (const InputError& error) {
    return error.problems().front();
  }
  ADD_FAILURE() << text << " was accepted";
  return {};
}

TEST(QuantityText, GigabytesAreDecimalAndGibibytesBinary) {
  EXPECT_EQ(parse_bytes("80 GB").value(), 80'000'000'000);
  EXPECT_EQ(parse_bytes("80 GiB").value(), 80LL << 30);
}

TEST(QuantityText, BandwidthInBitsIsAnEighth) {
  EXPECT_EQ(parse_bandwidth("400 Gb/s").value(), 50e9);
  EXPECT_EQ(parse_bandwidth("800Gbps").value(), 100e9);
  EXPECT_EQ(parse_bandwidth("450 GB/s").value(), 450e9);
}

TEST(QuantityText, DecimalPrefixesRoundLikeTheLiteral) {
  EXPECT_EQ(parse_seconds("3 us").value(), 3e-6);
  EXPECT_EQ(parse_seconds("12.3 us").value(), 12.3e-6);
  EXPECT_EQ(parse_seconds("0.7ns").value(), 0.7e-9);
  EXPECT_EQ(parse_flops_rate("66.9 TFLOPS").value(), 66.9e12);
  EXPECT_EQ(parse_flops_rate("66.9 TFLOP/s").value(), 66.9e12);
  EXPECT_EQ(parse_hertz("1980 MHz").value(), 1980e6);
  EXPECT_EQ(parse_watts("700 W").value(), 700);
  EXPECT_EQ(parse_flops("1.5e3 GFLOP").value(), 1.5e12);
}

TEST(QuantityText, MinutesHoursAndPercentAreFactors) {
  EXPECT_EQ(parse_seconds("2 min").value(), 120);
  EXPECT_EQ(parse_seconds("1.5 h").value(), 5400);
  EXPECT_EQ(parse_ratio("72 %"), 0.72);
  EXPECT_EQ(parse_ratio("0.9"), 0.9);
}

TEST(QuantityText, FractionsOfABinaryUnitRoundToTheNearestByte) {
  EXPECT_EQ(parse_bytes("1.5 KiB").value(), 1536);
  EXPECT_EQ(parse_bytes("0.0004 KiB").value(), 0);
}

TEST(QuantityText, ANumberWithoutUnitIsAnError) {
  const Problem problem = problem_with("450", Dimension::bytes_per_second);
  EXPECT_EQ(problem.what, "\"450\" has no unit");
  EXPECT_THAT(problem.hint, HasSubstr("GB/s"));
}

TEST(QuantityText, WrongCaseOfAUnitIsNamedWithTheRightOnes) {
  const Problem problem = problem_with("450 gb/s", Dimension::bytes_per_second);
  EXPECT_THAT(problem.what, HasSubstr("unknown unit \"gb/s\""));
  EXPECT_EQ(problem.hint, "did you mean GB/s or Gb/s?");
}

TEST(QuantityText, AUnitOfAnotherDimensionSaysWhatItIs) {
  EXPECT_THAT(problem_with("80 GB", Dimension::bytes_per_second).what,
              HasSubstr("is a size, not a bandwidth"));
}

TEST(QuantityText, UnknownUnitsListTheAcceptedOnes) {
  const Problem problem = problem_with("3 parsec", Dimension::seconds);
  EXPECT_THAT(problem.what, HasSubstr("unknown unit \"parsec\""));
  EXPECT_THAT(problem.hint, HasSubstr("s, ns, us, ms, min, h, d"));
}

TEST(QuantityText, NegativeInfiniteAndMissingNumbersAreErrors) {
  EXPECT_THAT(problem_with("-3 us", Dimension::seconds).what, HasSubstr("negative"));
  EXPECT_THAT(problem_with("-inf s", Dimension::seconds).what, HasSubstr("negative"));
  for (const char* text : {"nan s", "inf s", "infinity", "", " ", "GiB", ".", "+3 s", "e3 s"}) {
    EXPECT_THAT(problem_with(text, Dimension::seconds).what, HasSubstr("not a finite number"))
        << text;
  }
}

TEST(QuantityText, OverflowIsAnError) {
  EXPECT_THAT(problem_with("1e400 s", Dimension::seconds).what, HasSubstr("outside the range"));
  EXPECT_THAT(problem_with("1e308 GB/s", Dimension::bytes_per_second).what,
              HasSubstr("outside the range"));
  EXPECT_THROW(parse_bytes("9223372036854775808 B"), InputError);  // 2^63
  EXPECT_THROW(parse_bytes("8388608 TiB"), InputError);            // 2^23 * 2^40
  EXPECT_THROW(parse_bytes("1e30 GB"), InputError);
}

TEST(QuantityText, LargestSizeIsStillExact) {
  const Bytes largest(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_bytes(to_text(largest)), largest);
}

TEST(QuantityText, ExactTextPicksTheUnitThatFits) {
  EXPECT_EQ(to_text(80_GiB), "80 GiB");
  EXPECT_EQ(to_text(Bytes(1025)), "1025 B");
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(450_GBps), "450 GB/s");
  EXPECT_EQ(to_text(Seconds(12.3e-6)), "12.3 us");
  EXPECT_EQ(to_text(Seconds(86400)), "86400 s");
  EXPECT_EQ(to_text(Seconds(1e-12)), "1e-3 ns");
  EXPECT_EQ(to_text(66.9_TFLOPS), "66.9 TFLOPS");
  EXPECT_EQ(to_text(Hertz(1980e6)), "1.98 GHz");
  EXPECT_EQ(to_text(Watts(700)), "700 W");
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
}

TEST(QuantityText, ShortTextHasThreeSignificantDigits) {
  EXPECT_EQ(to_short_text(Seconds(12.3456e-3)), "12.3 ms");
  EXPECT_EQ(to_short_text(Seconds(999.96e-6)), "1.00 ms");
  EXPECT_EQ(to_short_text(Seconds(-1.5e-6)), "-1.50 us");
  EXPECT_EQ(to_short_text(Bytes(48'747'878'809)), "45.4 GiB");
  EXPECT_EQ(to_short_text(Bytes(512)), "512 B");
  EXPECT_EQ(to_short_text(989.4_TFLOPS), "989 TFLOPS");
  EXPECT_EQ(to_short_text(Flops(6.02e15)), "6.02 PFLOP");
}

TEST(QuantityText, AnyTextIsAFiniteValueOrAnInputError) {
  constexpr std::string_view kAlphabet = "0123456789.eE+- kMGTiBbs/%nuFLOPSHzWx";
  std::mt19937_64 random(3);
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (auto length = random() % 8; length > 0; --length) {
      text += kAlphabet[random() % kAlphabet.size()];
    }
    try {
      const double value = parse_quantity(text, static_cast<Dimension>(random() % 8));
      ASSERT_TRUE(std::isfinite(value) && value >= 0) << text;
      ++accepted;
    } catch (const InputError& error) {
      ASSERT_THAT(error.what(), HasSubstr(text));
    }
  }
  EXPECT_GT(accepted, 100);
}

/// Every bit pattern of a non-negative double is as likely as another: covers all magnitudes.
double any_finite(std::mt19937_64& random) {
  while (true) {
    const double value = std::bit_cast<double>(random() >> 1);
    if (std::isfinite(value)) return value;
  }
}

TEST(QuantityText, ParsingTheExactTextGivesTheValueBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const double value = any_finite(random);
    ASSERT_EQ(parse_seconds(to_text(Seconds(value))).value(), value);
    ASSERT_EQ(parse_bandwidth(to_text(BytesPerSecond(value))).value(), value);
    ASSERT_EQ(parse_flops(to_text(Flops(value))).value(), value);
    ASSERT_EQ(parse_flops_rate(to_text(FlopsPerSecond(value))).value(), value);
    ASSERT_EQ(parse_hertz(to_text(Hertz(value))).value(), value);
    ASSERT_EQ(parse_watts(to_text(Watts(value))).value(), value);
  }
}

TEST(QuantityText, ParsingTheExactTextOfASizeGivesTheBytesBack) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = random();
    const Bytes value(static_cast<std::int64_t>(bits >> (1 + bits % 63)));
    ASSERT_EQ(parse_bytes(to_text(value)), value);
  }
}

}  // namespace
}  // namespace tessera
