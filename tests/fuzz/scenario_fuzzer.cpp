// libFuzzer entry: whatever bytes a scenario file holds, loading gives a Scenario or an InputError,
// and what loads resolves to something that loads again.
#include <cstdlib>
#include <optional>

#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "tests/fuzz/input_file.h"

namespace {

/// The scenario, or nothing where the input is refused.
std::optional<tessera::Scenario> load(const std::filesystem::path& file) {
  static const tessera::Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  try {
    return tessera::load_scenario(file, {}, catalog);
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".yaml");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  const auto scenario = load(file);
  if (!scenario) return 0;
  tessera::fuzz::write(file, tessera::resolved_yaml(*scenario));
  if (!load(file)) std::abort();
  return 0;
}
