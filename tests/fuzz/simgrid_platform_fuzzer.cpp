// libFuzzer entry: whatever bytes a SimGrid platform holds.
#include "tests/fuzz/import_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tessera::fuzz::import_or_refuse(tessera::import_simgrid_platform, data, size);
  return 0;
}
