#include "sim/collectives/link_sums.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace tessera {
namespace {

struct Sum {
  LinkId link;
  double amount = 0;
};

// More terms than are kept, of sizes that make every other order of addition show.
TEST(LinkSums, AddsTheTermsOfALinkInTheirOrder) {
  std::mt19937_64 random(7);
  std::map<LinkId, double> expected;
  LinkSums sums;
  for (int term = 0; term < 20'000; ++term) {
    const LinkId link(static_cast<std::int32_t>(random() % 100));
    const double amount = std::uniform_real_distribution(0.0, 1.0)(random) / (1 + term % 17);
    expected[link] += amount;
    sums.add(link, amount);
  }
  const std::vector<Sum> listed = sums.list<Sum>();
  ASSERT_EQ(listed.size(), expected.size());
  auto next = expected.begin();
  for (const Sum& sum : listed) {
    EXPECT_EQ(sum.link, next->first);
    EXPECT_EQ(sum.amount, next->second);
    ++next;
  }
}

TEST(LinkSums, CountsALinkThatARouteNamesTwiceTwice) {
  LinkSums sums;
  sums.add(Route{.links = {LinkId(3), LinkId(1), LinkId(3)}, .latency = {}}, 2);
  const std::vector<Sum> listed = sums.list<Sum>();
  ASSERT_EQ(listed.size(), 2);
  EXPECT_EQ(listed[0].link, LinkId(1));
  EXPECT_EQ(listed[1].amount, 4);
}

}  // namespace
}  // namespace tessera
