#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/model_spec.h"

namespace tessera {

/// What a Hugging Face config.json says.
struct HuggingFaceModel {
  ModelSpec model;
  std::vector<std::string> harmless;        ///< keys that no step depends on
  std::vector<std::string> approximations;  ///< what the model lacks of what the file says
  std::int64_t longest = 0;                 ///< tokens that the model was made for; 0: not told
  bool checkpoints = false;  ///< gradient_checkpointing: layers run again in backward
};

/// Reads a config.json of a model_type that a family expresses (`architectures` stands in for it),
/// and the language model of a vision-language model. Dimensions must be present; dropout,
/// activation and tying fall back to the library's defaults. Every key is read, known to change
/// nothing, or refused: a lenient reader leaves out and approximates what a family lacks. `where`
/// (the file's name) is put before every message, with the line of the key. Throws InputError with
/// everything that is wrong.
HuggingFaceModel read_hugging_face_config(const std::string& json_text, const std::string& where,
                                          bool lenient = false);

}  // namespace tessera
