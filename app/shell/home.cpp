#include "app/shell/home.h"

#include <cstdlib>

#include "hw/units/program_file.h"
#include "sim/config/load.h"

namespace tessera {

std::filesystem::path home() {
  const char* chosen = std::getenv("TESSERA_HOME");
  return chosen && *chosen ? chosen : data_folder_of(program_file());
}

bool is_checkout() {
  return std::filesystem::exists(home() / "CMakeLists.txt");
}

Catalog shipped_catalog() {
  return Catalog(home() / "configs");
}

GpuLookup shipped_gpu_lookup() {
  return [catalog = shipped_catalog()](const std::string& id) { return load_gpu(id, catalog); };
}

std::filesystem::path weights_file() {
  return home() / "predictor" / "weights" / "tessera.pb";
}

PredictorWeights shipped_weights() {
  return load_weights(weights_file());
}

}  // namespace tessera
