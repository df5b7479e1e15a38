// libFuzzer entry: whatever bytes the output of nvidia-smi topo -m holds.
#include "tests/fuzz/import_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tessera::fuzz::import_or_refuse(tessera::import_smi_matrix, data, size);
  return 0;
}
