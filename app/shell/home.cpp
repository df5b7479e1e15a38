#include "app/shell/home.h"

#include <cstdlib>
#include <system_error>

#include "hw/units/input_error.h"
#include "hw/units/program_file.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

bool is_home(const std::filesystem::path& folder) {
  std::error_code failure;
  return std::filesystem::is_directory(folder / "configs", failure) &&
         std::filesystem::is_directory(folder / "predictor", failure);
}

/// Throws InputError that says where the files should lie, and how to name another place.
void check_home() {
  if (is_home(home())) return;
  const char* chosen = std::getenv("TESSERA_HOME");
  const bool named = chosen && *chosen;
  throw InputError(
      {.where = named ? "TESSERA_HOME" : program_file().string(),
       .what = home().string() + " holds no configs/ and predictor/, which come with Tessera",
       .hint = named ? "set it to a checkout or to share/tessera of an installation, or unset it"
                     : "set TESSERA_HOME to a checkout or to share/tessera of an installation"});
}

}  // namespace

std::filesystem::path home() {
  const char* chosen = std::getenv("TESSERA_HOME");
  return chosen && *chosen ? chosen : data_folder_of(program_file());
}

bool is_checkout() {
  return std::filesystem::exists(home() / "CMakeLists.txt");
}

Catalog shipped_catalog() {
  check_home();
  return Catalog(home() / "configs");
}

GpuLookup shipped_gpu_lookup() {
  return [catalog = shipped_catalog()](const std::string& id) { return load_gpu(id, catalog); };
}

std::filesystem::path weights_file() {
  return home() / "predictor" / "weights" / "tessera.pb";
}

PredictorWeights shipped_weights() {
  check_home();
  return load_weights(weights_file());
}

}  // namespace tessera
