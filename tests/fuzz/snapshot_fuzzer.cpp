// libFuzzer entry: whatever bytes a pickle holds, reading gives plain values or an InputError, and
// what was read as a snapshot can be written and read again with the same peaks.
#include <cstdlib>
#include <string>

#include "hw/units/input_error.h"
#include "sim/formats/snapshot/memory_snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  try {
    const std::string contents(data, data + size);
    for (const MemorySnapshot& snapshot : read_memory_snapshot(contents, "input")) {
      const SnapshotPeak peak = peak_of(snapshot);
      const auto again = read_memory_snapshot(to_pickle(snapshot), "written");
      const SnapshotPeak same = again.empty() ? SnapshotPeak() : peak_of(again.front());
      if (!again.empty() && same.reserved != peak.reserved) std::abort();
    }
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
