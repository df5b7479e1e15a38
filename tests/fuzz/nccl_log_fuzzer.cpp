// libFuzzer entry: whatever bytes an nccl-tests log holds, reading gives measurements or an
// InputError that says why not.
#include <cstdlib>

#include "hw/units/input_error.h"
#include "lab/validate/collectives/nccl_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tessera::NcclLog log = tessera::parse_nccl_log(text, "log");
    for (const tessera::NcclTime& row : log.times) {
      if (row.bytes.value() < 1 || !(row.time.value() > 0)) std::abort();
    }
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
