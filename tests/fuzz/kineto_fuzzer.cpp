// libFuzzer entry: whatever bytes a profiler's trace holds, plain or gzip, reading gives kernels in
// order or an InputError.
#include <algorithm>
#include <cstdlib>

#include "hw/units/input_error.h"
#include "sim/formats/kineto.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".json");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  try {
    const tessera::KinetoTrace trace = tessera::read_kineto(file);
    if (trace.kernels.empty() || trace.steps < 1) std::abort();
    if (!std::ranges::is_sorted(trace.kernels, {}, &tessera::TraceKernel::start)) std::abort();
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
