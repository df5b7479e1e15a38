#pragma once

#include <filesystem>
#include <string>

#include "sim/config/catalog.h"

namespace tessera {

/// Whether a reference is meant as a file: it has a slash or ends in .yaml, .yml or .json.
bool names_a_file(const std::string& reference);

/// The file of a scenario, a sweep, jobs of one cluster (neighbours) or failures (reliability),
/// which is named by its id in `catalog` or as a file. A name that could be either is taken for
/// neither: throws InputError, as for what does not exist.
std::filesystem::path shipped_or_own_file(CatalogKind kind, const std::string& id_or_file,
                                          const Catalog& catalog);

}  // namespace tessera
