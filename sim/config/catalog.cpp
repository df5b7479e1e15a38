#include "sim/config/catalog.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

const char* subfolder(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::gpus:
      return "hw/gpus";
    case CatalogKind::nodes:
      return "hw/nodes";
    case CatalogKind::clusters:
      return "hw/clusters";
    case CatalogKind::models:
      return "models";
    case CatalogKind::frameworks:
      return "frameworks";
    case CatalogKind::scenarios:
      return "scenarios";
    case CatalogKind::overlays:
      return "overlays";
    case CatalogKind::collectives:
      return "collectives";
    case CatalogKind::hosts:
      return "hosts";
    case CatalogKind::sweeps:
      return "sweeps";
    case CatalogKind::neighbours:
      return "neighbours";
    case CatalogKind::reliability:
      return "reliability";
  }
  return "";
}

}  // namespace

Catalog::Catalog(std::filesystem::path root) : root_(std::move(root)) {}

std::filesystem::path Catalog::folder(CatalogKind kind) const {
  return root_ / subfolder(kind);
}

std::filesystem::path Catalog::file(CatalogKind kind, const std::string& id) const {
  return folder(kind) / (id + ".yaml");
}

bool Catalog::has(CatalogKind kind, const std::string& id) const {
  std::error_code failure;
  return std::filesystem::is_regular_file(file(kind, id), failure);
}

std::string Catalog::completed(CatalogKind kind, const std::string& id) const {
  if (has(kind, id)) return id;
  std::string found;
  for (const std::string& longer : ids(kind)) {
    if (!longer.starts_with(id + "-")) continue;
    if (!found.empty()) return id;
    found = longer;
  }
  return found.empty() ? id : found;
}

std::vector<std::string> Catalog::ids(CatalogKind kind) const {
  std::vector<std::string> ids;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder(kind), failure)) {
    if (entry.path().extension() == ".yaml") ids.push_back(entry.path().stem().string());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace tessera
