#include "hw/link_rates.h"

namespace tessera {

double nccl_nvlink_share(int generation) {
  switch (generation) {
    case 1:
      return 0.9;
    case 2:
      return 0.88;
    case 3:
      return 0.8;
    case 4:
      return 0.824;
    default:
      return 0.802;
  }
}

}  // namespace tessera
