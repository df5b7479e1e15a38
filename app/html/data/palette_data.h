#pragma once

#include <nlohmann/json.hpp>

namespace tessera {

/// Words and colours of the classes of time, by TimeCategory: members `words` and "colours".
nlohmann::ordered_json palette_data(const char* words);

}  // namespace tessera
