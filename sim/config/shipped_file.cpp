#include "sim/config/shipped_file.h"

#include <system_error>

#include "hw/units/input_error.h"
#include "sim/config/files/text_file.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// What messages call a file of the catalog, and the word for which `tessera list` has all.
struct Words {
  const char* one;
  const char* list;
};

Words words_of(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::sweeps:
      return {"sweep", "sweeps"};
    case CatalogKind::neighbours:
      return {"file of jobs", "neighbours"};
    case CatalogKind::reliability:
      return {"file of failures", "reliability"};
    default:
      return {"scenario", "scenarios"};
  }
}

bool exists(const fs::path& file) {
  std::error_code failure;
  return fs::exists(file, failure);
}

/// Of a file that lies in the catalog, but not where it was looked for.
[[noreturn]] void fail_elsewhere(const fs::path& file, const Words& words) {
  throw InputError(
      {shown_path(file), "no such file",
       std::string("this ") + words.one + " is shipped: name it " + file.stem().string()});
}

[[noreturn]] void fail_unknown(CatalogKind kind, const std::string& id, const Catalog& catalog) {
  const Words words = words_of(kind);
  if (kind == CatalogKind::scenarios && catalog.has(CatalogKind::models, id))
    throw InputError({id, "is a model, and a scenario says where and how it is trained",
                      "tessera list scenarios has those that are shipped; tessera fit " + id +
                          " CLUSTER and tessera plan parallelism " + id +
                          " CLUSTER --global-batch N take a model"});
  throw InputError({id, std::string("no such file, and no ") + words.one + " that is shipped",
                    suggestion(id, catalog.ids(kind)) + " (tessera list " + words.list + ")"});
}

}  // namespace

bool names_a_file(const std::string& reference) {
  const std::string extension = fs::path(reference).extension().string();
  return reference.find('/') != std::string::npos || extension == ".yaml" || extension == ".yml" ||
         extension == ".json";
}

fs::path shipped_or_own_file(CatalogKind kind, const std::string& id_or_file,
                             const Catalog& catalog) {
  const Words words = words_of(kind);
  if (names_a_file(id_or_file)) {
    if (!exists(id_or_file) && catalog.has(kind, fs::path(id_or_file).stem().string()))
      fail_elsewhere(id_or_file, words);
    return id_or_file;
  }
  std::error_code failure;
  const bool shipped = catalog.has(kind, id_or_file);
  if (shipped && fs::is_regular_file(id_or_file, failure))
    throw InputError({id_or_file, std::string("is a shipped ") + words.one + " and a file here",
                      "write ./" + id_or_file + " for the file, or change the folder"});
  if (shipped) return catalog.file(kind, id_or_file);
  if (exists(id_or_file)) return id_or_file;
  fail_unknown(kind, id_or_file, catalog);
}

}  // namespace tessera
