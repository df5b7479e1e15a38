#include "app/html/live_page.h"

#include "app/html/page.h"

namespace tessera {

std::string live_page(const LiveForm& form) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::array();
  for (const LiveField& field : form.fields)
    fields.push_back({{"path", field.path},
                      {"label", field.label},
                      {"help", field.help},
                      {"kind", field.is_number ? "number" : "choice"},
                      {"values", field.values},
                      {"value", field.value}});
  const nlohmann::ordered_json page{
      {"title", "Tessera: " + form.scenario},
      {"subtitle", "how long a step takes, whether it fits, where the time goes"},
      {"live", {{"scenario", form.scenario}, {"fields", std::move(fields)}, {"gpus", form.gpus}}}};
  return html_page(page, kChartLibrary, PageReach::own_server);
}

}  // namespace tessera
