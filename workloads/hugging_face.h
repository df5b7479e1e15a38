#pragma once

#include <string>
#include <vector>

#include "workloads/model_spec.h"

namespace tessera {

/// Reads a Hugging Face config.json of model_type gpt2, opt, bert, bloom, llama, mixtral, mpt or
/// switch_transformers.
/// Dimensions must be present; dropout, activation and tying fall back to the library's defaults.
/// `where` (the file's name) is put before every message. Throws InputError with everything that is
/// missing, of the wrong type or out of range. `unread` receives the keys that no field follows
/// from.
ModelSpec read_hugging_face_config(const std::string& json_text, const std::string& where,
                                   std::vector<std::string>* unread = nullptr);

}  // namespace tessera
