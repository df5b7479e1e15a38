#include "hw/link_rates.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(LinkRates, NvlinkTwoLostAtNccl215) {
  EXPECT_DOUBLE_EQ(nccl_nvlink_share(2), 20.0 / 25);
  EXPECT_DOUBLE_EQ(nccl_nvlink_share_before_2_15(2), 22.0 / 25);
  EXPECT_DOUBLE_EQ(nccl_nvlink_share_before_2_15(4), 20.6 / 25);
}

}  // namespace
}  // namespace tessera
