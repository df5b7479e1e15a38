#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

enum class CatalogKind : std::uint8_t {
  gpus,
  nodes,
  clusters,
  models,
  frameworks,
  scenarios,
  overlays,
  collectives,
  hosts,
  sweeps,
  neighbours,
  reliability
};

/// The shipped descriptions: a folder with hw/gpus, hw/nodes, hw/clusters, models, frameworks,
/// scenarios, overlays (of the user: none is shipped), collectives, hosts, sweeps, neighbours (jobs
/// of one cluster) and reliability (published failures), in which `<id>.yaml` describes `id`.
class Catalog {
 public:
  /// `root` is the repository's configs/ folder. It need not exist: then every list is empty.
  explicit Catalog(std::filesystem::path root);

  std::filesystem::path folder(CatalogKind kind) const;
  std::filesystem::path file(CatalogKind kind, const std::string& id) const;
  bool has(CatalogKind kind, const std::string& id) const;
  /// `id`, or the one id that goes on from it behind a dash: "B300-SXM" is "B300-SXM-288GB".
  std::string completed(CatalogKind kind, const std::string& id) const;
  /// Ids in alphabetical order.
  std::vector<std::string> ids(CatalogKind kind) const;

 private:
  std::filesystem::path root_;
};

}  // namespace tessera
