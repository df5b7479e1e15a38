#include "hw/link_rates.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(LinkRates, SharesOfTheLineRateByGeneration) {
  EXPECT_DOUBLE_EQ(nccl_nvlink_share(2), 22.0 / 25);  // measured on a DGX-1
  EXPECT_DOUBLE_EQ(nccl_nvlink_share(3), 20.0 / 25);
  EXPECT_DOUBLE_EQ(nccl_nvlink_share(4), 20.6 / 25);
}

}  // namespace
}  // namespace tessera
