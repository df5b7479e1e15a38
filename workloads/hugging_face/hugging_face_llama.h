#pragma once

#include <cstdint>

#include "workloads/hugging_face/config_reader.h"

namespace tessera {

constexpr std::int64_t kMostHuggingFaceLayers = 10'000;

/// A head_dim of its own needs no divisor.
void set_heads(ConfigReader& in, ModelSpec& model, const char* heads, const char* hidden);

// Readers of one model_type each, named as transformers names its code: models/NAME/.

void read_llama(ConfigReader& in, ModelSpec& model);
void read_qwen2(ConfigReader& in, ModelSpec& model);
void read_qwen3(ConfigReader& in, ModelSpec& model);

// hugging_face_dense.cpp
void read_gemma(ConfigReader& in, ModelSpec& model);
void read_gemma2(ConfigReader& in, ModelSpec& model);
void read_gemma3(ConfigReader& in, ModelSpec& model);
void read_phi3(ConfigReader& in, ModelSpec& model);
void read_olmo2(ConfigReader& in, ModelSpec& model);
void read_olmo3(ConfigReader& in, ModelSpec& model);
void read_internlm2(ConfigReader& in, ModelSpec& model);
void read_granite(ConfigReader& in, ModelSpec& model);
void read_minicpm(ConfigReader& in, ModelSpec& model);
void read_exaone(ConfigReader& in, ModelSpec& model);
void read_baichuan(ConfigReader& in, ModelSpec& model);
// hugging_face_layer_norm.cpp
void read_stablelm(ConfigReader& in, ModelSpec& model);
void read_falcon(ConfigReader& in, ModelSpec& model);
void read_gpt_neox(ConfigReader& in, ModelSpec& model);
void read_gptj(ConfigReader& in, ModelSpec& model);
void read_phi(ConfigReader& in, ModelSpec& model);
void read_cohere(ConfigReader& in, ModelSpec& model);
void read_cohere2(ConfigReader& in, ModelSpec& model);
void read_starcoder2(ConfigReader& in, ModelSpec& model);
// hugging_face_sparse.cpp
void read_deepseek_v2(ConfigReader& in, ModelSpec& model);
void read_deepseek_v3(ConfigReader& in, ModelSpec& model);
void read_glm4_moe(ConfigReader& in, ModelSpec& model);
void read_gpt_oss(ConfigReader& in, ModelSpec& model);
void read_qwen2_moe(ConfigReader& in, ModelSpec& model);

/// Windows of layers as `layer_types` lists them, or every `pattern`-th without one (0: all have
/// one). Sets nothing where no layer has a window.
void read_window(ConfigReader& in, ModelSpec& model, std::int64_t window, std::int64_t pattern);

/// Numbers of a head that `factor` of it turns, by partial_rotary_factor or another key.
void read_partial_rotary(ConfigReader& in, ModelSpec& model, const char* key, double usual);

}  // namespace tessera
