#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/catalog.h"

namespace tessera {

/// What is shipped of a kind, one a line with its figures: GPUs with memory and peaks, nodes and
/// clusters with their GPUs, models with parameters and sizes; of other kinds the ids.
std::string catalog_table(CatalogKind kind, const Catalog& catalog);

/// A model in words: parameters, sizes, and what they are called in a scenario.
std::string model_facts(const std::string& id, const Catalog& catalog);

/// What a term of the answers means ("MFU", "bubble"), whatever its case; empty for others.
std::optional<std::string> term_text(std::string_view term);

/// The terms that term_text() knows; known_terms() as one text.
std::vector<std::string> term_names();
std::string known_terms();

}  // namespace tessera
