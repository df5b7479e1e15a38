// libFuzzer entry: whatever bytes a scenario file holds, loading gives a Scenario or an InputError.
// Configure with clang and -DTESSERA_BUILD_FUZZERS=ON; run: scenario_fuzzer <scratch folder>
// configs/scenarios

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

#include "hw/units/input_error.h"
#include "sim/config/load.h"

namespace {

/// One file per process, in the working memory's file system where there is one.
std::filesystem::path input_file() {
  const std::string name = "scenario_fuzzer_" + std::to_string(getpid()) + ".yaml";
  const std::filesystem::path memory = "/dev/shm";
  const bool has_memory = std::filesystem::is_directory(memory);
  return (has_memory ? memory : std::filesystem::temp_directory_path()) / name;
}

void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

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
  static const std::filesystem::path file = input_file();
  write(file, {reinterpret_cast<const char*>(data), size});
  const auto scenario = load(file);
  if (!scenario) return 0;
  write(file, tessera::resolved_yaml(*scenario));
  if (!load(file)) std::abort();  // what loads resolves to something that loads again
  return 0;
}
