#include "app/html/data/palette_data.h"

#include "sim/report/palette.h"

namespace tessera {

nlohmann::ordered_json palette_data(const char* words) {
  nlohmann::ordered_json data{{words, nlohmann::ordered_json::array()},
                              {"colours", nlohmann::ordered_json::array()}};
  for (const TimeCategory category : time_categories()) {
    data[words].push_back(look_of(category).words);
    data["colours"].push_back(look_of(category).colour);
  }
  return data;
}

}  // namespace tessera
