#include "sim/process/late_load.h"

namespace tessera {

LateLoad& late_load() {
  static LateLoad load;
  return load;
}

}  // namespace tessera
