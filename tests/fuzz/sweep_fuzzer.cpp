// libFuzzer entry: whatever bytes a sweep file holds, reading gives points or an InputError.
#include <cstdlib>

#include "app/sweep/sweep_grid.h"
#include "hw/units/input_error.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".yaml");
  static const tessera::Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  try {
    const tessera::SweepSpec spec = tessera::read_sweep(file, catalog);
    const tessera::ScenarioSource source(spec.base, spec.source, catalog);
    const tessera::SweepGrid grid(spec, source);
    for (const std::int64_t number : chosen_points(grid, spec, {.sample = 8})) grid.point(number);
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
