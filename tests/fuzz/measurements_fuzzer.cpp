// libFuzzer entry: whatever bytes a file of measured kernels or model runs holds, reading gives
// rows or an InputError.
#include <cstdlib>

#include "hw/units/input_error.h"
#include "lab/validate/models/model_runs.h"
#include "predictor/measured/measurements.h"
#include "tests/fuzz/input_file.h"

namespace {

/// Refusals have to say why.
template <class Read>
void read_or_refuse(Read read) {
  try {
    read();
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".csv");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  read_or_refuse([] { tessera::read_measurements(file); });
  read_or_refuse([] { tessera::read_model_runs(file); });
  return 0;
}
