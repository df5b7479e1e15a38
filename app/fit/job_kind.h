#pragma once

#include <cstdint>
#include <string>

#include "sim/config/catalog.h"

namespace tessera {

/// What a file or an id describes.
enum class JobKind : std::uint8_t {
  scenario,
  model,         ///< of the catalog, or a file of its form
  hugging_face,  ///< config.json, or a folder with one
  deepspeed,
  accelerate,
  trainer,  ///< arguments of Hugging Face's Trainer, or of a program around it, in JSON or YAML
  torchtitan,
  nanotron,
  foundry,
  megatron,  ///< a shell script, or arguments alone
};

/// By the catalog, else by what the file holds. Throws InputError where there is neither, or where
/// a JSON file is none of those.
JobKind job_kind(const std::string& what, const Catalog& catalog);

}  // namespace tessera
