#include "workloads/model_graph.h"

#include "workloads/families/families.h"
#include "workloads/fusion.h"
#include "workloads/vision/architectures.h"

namespace tessera {
namespace {

ModelGraph eager_graph(const ModelSpec& model, const StepOptions& step) {
  if (step.framework.modules == ModuleTree::megatron) return megatron_blocks(model, step);
  switch (model.family) {
    case ModelFamily::gpt2:
      return gpt2_blocks(model, step);
    case ModelFamily::opt:
      return opt_blocks(model, step);
    case ModelFamily::bert:
      return bert_blocks(model, step);
    case ModelFamily::llama:
      return llama_blocks(model, step);
    case ModelFamily::switch_transformer:
      return switch_transformer_blocks(model, step);
    case ModelFamily::bloom:
      return bloom_blocks(model, step);
    case ModelFamily::mpt:
      return mpt_blocks(model, step);
    case ModelFamily::vision:
      return vision_blocks(model, step);
  }
  return {};
}

/// Multiprocessors: defaults of Megatron-Core's transformer_config.py, moe_deepep_num_sms and
/// moe_hybridep_num_sms.
TokenRouting routing_of(const ModelSpec& model, const StepOptions& step) {
  const ExpertDispatcher dispatcher = step.framework.expert_dispatcher;
  if (!sends_tokens_once(dispatcher) || model.experts == 0) return {};
  return {model.experts, model.experts_per_token, dispatcher == ExpertDispatcher::deepep ? 20 : 16};
}

}  // namespace

namespace {

Bytes bytes_of(const Block& block, StorageScope scope) {
  for (const Storage& storage : block.storages) {
    if (storage.scope == scope) return storage.bytes;
  }
  return Bytes(0);
}

}  // namespace

Bytes input_bytes(const Block& block) {
  return bytes_of(block, StorageScope::enters_forward);
}

Bytes output_bytes(const Block& block) {
  return bytes_of(block, StorageScope::leaves_forward);
}

Bytes held_bytes(const Block& block) {
  return bytes_of(block, StorageScope::held);
}

std::int64_t ModelGraph::parameters() const {
  std::int64_t sum = 0;
  for (int position = 0; position < static_cast<int>(order.size()); ++position) {
    sum += at(position).parameters;
  }
  return sum;
}

ModelGraph build_model_graph(const ModelSpec& model, const StepOptions& step) {
  ModelGraph graph = eager_graph(model, step);
  graph.tokens = routing_of(model, step);
  if (step.kernels == KernelMode::fused) {
    for (Block& block : graph.blocks) fuse_pointwise(block);
  }
  return graph;
}

}  // namespace tessera
