// libFuzzer entry: whatever bytes a file of nanotron holds.
#include "tests/fuzz/import_job_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tessera::fuzz::import_job_or_refuse(tessera::import_nanotron, data, size, {});
  return 0;
}
