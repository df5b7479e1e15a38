#pragma once

#include <string>

#include "sim/config/catalog.h"

namespace tessera {

/// What is shipped of a kind, one a line with its figures: GPUs with memory and peaks, nodes and
/// clusters with their GPUs, models with parameters and sizes; of other kinds the ids.
std::string catalog_table(CatalogKind kind, const Catalog& catalog);

/// A model in words: parameters, sizes, and what they are called in a scenario.
std::string model_facts(const std::string& id, const Catalog& catalog);

}  // namespace tessera
