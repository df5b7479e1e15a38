#pragma once

#include "workloads/graph/block.h"
#include "workloads/model_graph.h"
#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

/// Embedding, `layers` equal layers, head.
ModelGraph decoder_sequence(Block embedding, Block layer, Block head, std::int64_t layers);

// Hugging Face modules, version 4.35, one GPU.
ModelGraph gpt2_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph opt_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph bert_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph llama_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph bloom_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph mpt_blocks(const ModelSpec& model, const StepOptions& step);
ModelGraph switch_transformer_blocks(const ModelSpec& model, const StepOptions& step);

/// Megatron-Core's GPT or Llama, or BLOOM of its forks, of one tensor-parallel rank.
ModelGraph megatron_blocks(const ModelSpec& model, const StepOptions& step);

}  // namespace tessera
