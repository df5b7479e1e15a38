#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "sim/config/files/yaml_text.h"
#include "tests/fuzz/input_file.h"

namespace tessera::fuzz {

/// Whatever bytes a file holds, importing gives a scenario whose YAML can be read, or an InputError
/// that says why.
template <class Importer>
void import_job_or_refuse(Importer importer, const std::uint8_t* data, std::size_t size,
                          const JobOptions& options = {.model = "gpt2"}) {
  ImportedJob job;
  try {
    job = importer(std::string(text_of(data, size)), "fuzzed", options);
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
    return;
  }
  const auto origin = std::make_shared<Origin>(Origin{"imported", {}, true});
  if (parse_yaml(to_yaml(job.scenario), origin).kind != YamlNode::Kind::mapping) std::abort();
}

}  // namespace tessera::fuzz
