#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera {

/// A field of a scenario that a form offers.
struct LiveField {
  std::string path;   ///< "training.micro_batch"
  std::string label;  ///< in words
  std::string help;
  bool is_number = false;
  std::vector<nlohmann::ordered_json> values;  ///< ascending numbers, or words
  nlohmann::ordered_json value;                ///< of the scenario that one began with
};

/// The form of `tessera serve`.
struct LiveForm {
  std::string scenario;  ///< the one that one began with
  std::vector<LiveField> fields;
  nlohmann::ordered_json gpus;  ///< of each cluster, by its id
};

/// A page that asks the server that it came from for steps: `/step`, `/report` and
/// `/scenario.yaml` with `set=PATH=VALUE` for each field that was changed.
std::string live_page(const LiveForm& form);

}  // namespace tessera
