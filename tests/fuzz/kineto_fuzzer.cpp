// libFuzzer entry: whatever bytes a profiler's trace holds, plain or gzip, reading gives kernels in
// order, times of the host's calls that are not negative, or an InputError.
#include <algorithm>
#include <cstdlib>

#include "hw/units/input_error.h"
#include "sim/formats/kineto.h"
#include "sim/formats/kineto_host.h"
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
  try {
    const tessera::HostTrace host = tessera::read_host_trace(file);
    if (host.operators.calls + host.compiled.calls < 1) std::abort();
    for (const tessera::HostCallCost& cost :
         {host.operators, host.compiled, host.collectives, host.messages})
      if (!(cost.mean >= tessera::Seconds()) || !(cost.median >= tessera::Seconds())) std::abort();
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
