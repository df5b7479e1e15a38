#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lab/validate/studies/ranking.h"

namespace tessera {

/// One line per group, per source and for all; nothing where no group is large enough.
std::string ranking_text(const Ranking& ranking);

/// definition, groups[], sources[], all. What is unknown is null.
nlohmann::ordered_json ranking_json(const Ranking& ranking);

}  // namespace tessera
