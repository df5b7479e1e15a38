#include "sim/config/scenario_file.h"

#include <system_error>

#include "hw/units/input_error.h"
#include "sim/config/files/text_file.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool exists(const fs::path& file) {
  std::error_code failure;
  return fs::is_regular_file(file, failure);
}

/// Of a file that lies in the catalog, but not where it was looked for.
[[noreturn]] void fail_elsewhere(const fs::path& file) {
  throw InputError({shown_path(file), "no such file",
                    "this scenario is shipped: name it " + file.stem().string()});
}

}  // namespace

bool names_a_file(const std::string& reference) {
  const std::string extension = fs::path(reference).extension().string();
  return reference.find('/') != std::string::npos || extension == ".yaml" || extension == ".yml" ||
         extension == ".json";
}

fs::path scenario_file(const std::string& id_or_file, const Catalog& catalog) {
  std::error_code failure;
  const bool shipped = catalog.has(CatalogKind::scenarios, id_or_file);
  if (names_a_file(id_or_file)) {
    const std::string id = fs::path(id_or_file).stem().string();
    if (!fs::exists(id_or_file, failure) && catalog.has(CatalogKind::scenarios, id))
      fail_elsewhere(id_or_file);
    return id_or_file;
  }
  if (shipped && exists(id_or_file))
    throw InputError({id_or_file, "is a shipped scenario and a file here",
                      "write ./" + id_or_file + " for the file, or change the folder"});
  if (shipped) return catalog.file(CatalogKind::scenarios, id_or_file);
  if (fs::exists(id_or_file, failure)) return id_or_file;
  if (catalog.has(CatalogKind::models, id_or_file))
    throw InputError({id_or_file, "is a model, and a scenario says where and how it is trained",
                      "tessera list scenarios has those that are shipped; tessera fit " +
                          id_or_file + " CLUSTER and tessera plan parallelism " + id_or_file +
                          " CLUSTER --global-batch N take a model"});
  throw InputError(
      {id_or_file, "no such file, and no scenario that is shipped",
       suggestion(id_or_file, catalog.ids(CatalogKind::scenarios)) + " (tessera list scenarios)"});
}

}  // namespace tessera
