#include "sim/remat/portable_math.h"

#include <gtest/gtest.h>

namespace tessera::remat {
namespace {

TEST(PortableMath, ExponentialsBesideEachOtherAreThoseOfEachAlone) {
  Random random(3);
  std::vector<double> values = {0, 1, -1, 0.5, -800, 600, -694, -1e6, 1e-12};
  for (int i = 0; i < 1000; ++i) values.push_back(40 * (random.uniform() - 0.5));
  std::vector<double> together = values;
  portable_exp_each(together);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(together[i], portable_exp(values[i])) << values[i];
  EXPECT_NEAR(together[1], 2.718281828459045, 1e-9);
}

}  // namespace
}  // namespace tessera::remat
