// libFuzzer entry: whatever bytes NCCL's topology file holds.
#include "tests/fuzz/import_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tessera::fuzz::import_or_refuse(tessera::import_nccl_topology, data, size);
  return 0;
}
