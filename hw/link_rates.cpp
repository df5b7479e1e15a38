#include "hw/link_rates.h"

namespace tessera {

double nccl_nvlink_share(int generation) {
  switch (generation) {
    case 1:
      return 0.9;
    case 2:
    case 3:
      return 0.8;
    case 4:
      return 0.824;
    default:
      return 0.802;
  }
}

double nccl_nvlink_share_before_2_15(int generation) {
  return generation == 2 ? 0.88 : nccl_nvlink_share(generation);
}

}  // namespace tessera
