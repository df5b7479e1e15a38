#include "app/html/data/provenance_data.h"

namespace tessera {

using PageJson = nlohmann::ordered_json;

PageJson page_entry(std::string_view name, const PageJson& value, std::string_view definition) {
  return {{"name", name}, {"value", value}, {"definition", definition}};
}

PageJson provenance_data(const Provenance& provenance) {
  PageJson list = provenance_data(provenance.tessera_version);
  list.push_back(page_entry("scenario", provenance.scenario));
  list.push_back(page_entry("model", provenance.model));
  list.push_back(page_entry("mode", provenance.mode));
  list.push_back(page_entry("framework", provenance.framework));
  list.push_back(page_entry("recompute", provenance.recompute));
  list.push_back(page_entry("predictor", provenance.predictor + ", " + provenance.predictor_mode));
  list.push_back(page_entry("effect of the GPU", provenance.predictor_effect));
  for (const std::string& note : provenance.predictor_notes)
    list.push_back(page_entry("note", note));
  for (const std::string& note : provenance.link_notes) list.push_back(page_entry("links", note));
  for (const std::string& text : provenance.approximations)
    list.push_back(page_entry("approximate", text));
  return list;
}

PageJson provenance_data(const StepReport& report, const Provenance& provenance) {
  const ParallelLayout& layout = report.layout;
  PageJson list = provenance_data(provenance);
  list.push_back(page_entry("precision", std::string(name_of(report.precision)),
                            "of the products that do most of the FLOPs"));
  list.push_back(page_entry("GPUs", std::to_string(report.gpus()) + " x " + report.gpu));
  list.push_back(page_entry("tensor x pipeline x data", std::to_string(layout.tensor) + " x " +
                                                            std::to_string(layout.pipeline) +
                                                            " x " + std::to_string(layout.data)));
  list.push_back(page_entry("micro-batches", report.micro_batches));
  return list;
}

PageJson provenance_data(const std::string& tessera_version) {
  return PageJson::array({page_entry("tessera", tessera_version)});
}

}  // namespace tessera
