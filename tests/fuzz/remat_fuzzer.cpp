// libFuzzer entry: whatever bytes a graph to plan for holds (JSON, or a DTR log), reading gives
// operators whose peak is known, or an InputError.
#include <cstdlib>

#include "hw/units/input_error.h"
#include "sim/remat/io/instance.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".json");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  try {
    const tessera::remat::Instance instance = tessera::remat::read_instance(file);
    if (instance.count < 1 || tessera::remat::base_peak(instance.graph) < 0) std::abort();
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
