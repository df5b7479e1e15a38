#pragma once

#include <string>

#include "workloads/hugging_face/config_reader.h"

namespace tessera {

using ReadFamily = void (*)(ConfigReader&, ModelSpec&);

/// Reads the dimensions of a model_type; nullptr for one that no family expresses.
ReadFamily reader_of_model_type(const std::string& model_type);
/// Every model_type that is read: "bert, bloom, gpt2".
std::string known_model_types();
/// Why a well-known model_type is not simulated, and what to do about it; empty for others.
struct NotSimulated {
  std::string why;  ///< "latent attention of another make"
  std::string remedy;
};
NotSimulated why_not_simulated(const std::string& model_type);
/// model_type of a class of transformers: "llama" of "LlamaForCausalLM"; empty for unknown ones.
std::string model_type_of_architecture(const std::string& architecture);

}  // namespace tessera
