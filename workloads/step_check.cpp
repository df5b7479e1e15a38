#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/input_error.h"
#include "workloads/families/modules.h"
#include "workloads/model_graph.h"
#include "workloads/parallel/layer_split.h"
#include "workloads/schedules/virtual_pipeline.h"
#include "workloads/vision/architectures.h"

namespace tessera {
namespace {

std::string divisors_of(std::int64_t number) {
  constexpr std::int64_t kLargestNamed = 64;
  std::string text;
  for (std::int64_t d = 1; d <= std::min(number, kLargestNamed); ++d) {
    if (number % d != 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(d);
  }
  return text;
}

class StepCheck {
 public:
  StepCheck(const ModelSpec& model, const StepOptions& step) : model_(model), step_(step) {}

  std::vector<Problem> run() && {
    check_dimensions();
    check_batch();
    if (!problems_.empty()) return std::move(problems_);  // the rest divides by these
    check_sequence();
    check_precision();
    check_data_parallel();
    require_divisor("kv_heads", model_.kv_heads, "the attention heads", model_.heads);
    check_schedule();
    if (step_.framework.modules == ModuleTree::megatron) {
      check_megatron();
    } else {
      check_hugging_face();
    }
    return std::move(problems_);
  }

 private:
  void fail(std::string where, std::string what, std::string hint) {
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }
  void require_positive(const std::string& field, std::int64_t value) {
    if (value > 0) return;
    fail(field, "is " + std::to_string(value), "use a number above 0");
  }
  void require_divisor(const std::string& field, std::int64_t divisor, std::string_view of,
                       std::int64_t number) {
    if (number % divisor == 0) return;
    fail(field,
         std::to_string(divisor) + " does not divide " + std::string(of) + " = " +
             std::to_string(number),
         "use one of " + divisors_of(number));
  }

  void check_dimensions();
  void check_batch();
  void check_sequence();
  void check_precision();
  void check_data_parallel();
  void check_megatron();
  void check_hugging_face();
  void check_schedule();
  void check_split();
  void check_replicas();

  const ModelSpec& model_;
  const StepOptions& step_;
  std::vector<Problem> problems_;
};

void StepCheck::check_dimensions() {
  require_positive("layers", model_.layers);
  require_positive("hidden", model_.hidden);
  require_positive("heads", model_.heads);
  require_positive("kv_heads", model_.kv_heads);
  require_positive("head_dim", model_.head_dim);
  require_positive("ffn", model_.ffn);
  require_positive("vocab", model_.vocab);
}

void StepCheck::check_batch() {
  require_positive("sequence_length", step_.sequence_length);
  require_positive("micro_batch", step_.micro_batch);
  require_positive("global_batch", step_.global_batch);
  require_positive("parallelism.tensor", step_.layout.tensor);
  require_positive("parallelism.pipeline", step_.layout.pipeline);
  require_positive("parallelism.data", step_.layout.data);
  require_positive("parallelism.virtual_stages", step_.layout.virtual_stages);
  require_positive("parallelism.context", step_.layout.context);
  require_positive("parallelism.expert", step_.layout.expert);
  if (!problems_.empty()) return;
  const std::int64_t together = step_.micro_batch * step_.layout.data;
  if (step_.global_batch % together == 0) return;
  fail("global_batch",
       std::to_string(step_.global_batch) +
           " is no multiple of micro_batch * parallelism.data = " + std::to_string(together),
       "every data-parallel rank runs whole micro-batches");
}

void StepCheck::check_sequence() {
  if (model_.max_positions == 0 || step_.sequence_length <= model_.max_positions) return;
  fail("sequence_length",
       std::to_string(step_.sequence_length) + " exceeds the " +
           std::to_string(model_.max_positions) + " position embeddings of " + model_.name,
       "use a shorter sequence or a model with more positions");
}

void StepCheck::check_data_parallel() {
  const DataParallel& data = step_.data_parallel;
  if (data.shard_group > 0)
    require_divisor("training.data_parallel.shard_group", data.shard_group,
                    "the data-parallel ranks", step_.layout.replicas());
  if (data.gather_units && data.sharding != Sharding::gradients)
    fail("training.data_parallel.gather_units", "is for sharding: gradients",
         "leave it out: with sharding: parameters units are gathered anyway");
  const bool sharded = data.sharding != Sharding::none && step_.layout.replicas() > 1;
  if (sharded && step_.schedule == PipelineSchedule::dualpipe)
    fail("training.data_parallel.sharding", "is not simulated with the schedule dualpipe",
         "use sharding: none, or another schedule");
  if (!sharded || step_.layout.expert == 1) return;
  if (data.sharding != Sharding::optimizer)
    fail("training.data_parallel.sharding",
         "of gradients or parameters is not simulated with expert parallelism",
         "use sharding: optimizer or none, or parallelism.expert: 1");
  if (data.shard_group > 0 && data.shard_group < step_.layout.replicas())
    fail("training.data_parallel.shard_group",
         std::to_string(data.shard_group) +
             ": shard groups that are not all replicas are not simulated with expert parallelism",
         "leave it out, or use parallelism.expert: 1");
}

void StepCheck::check_precision() {
  const std::string name(name_of(step_.precision));
  if (step_.precision == Precision::int8 || step_.precision == Precision::int64)
    fail("precision", name + " trains no model", "use fp32, tf32, bf16, fp16 or fp8");
  if (step_.precision == Precision::fp8 && step_.framework.modules != ModuleTree::megatron)
    fail("precision", "fp8 is for the linear layers of Transformer Engine",
         "use framework: megatron, or precision: bf16");
  const bool full = activation_precision(step_.precision) == Precision::fp32;
  const AttentionKernels attention = step_.framework.attention;
  if (full && attention != AttentionKernels::unfused)
    fail("framework.attention", "fused attention is for 16-bit activations",
         "use attention: unfused, or precision: bf16");
}

void StepCheck::check_schedule() {
  const int stages = step_.layout.pipeline;
  const int chunks = step_.layout.virtual_stages;
  const std::int64_t micro_batches = step_.micro_batches();
  const std::string batches = std::to_string(micro_batches);
  const bool interleaved = step_.schedule == PipelineSchedule::interleaved_1f1b;
  if (interleaved != (chunks > 1)) {
    fail("parallelism.virtual_stages",
         std::to_string(chunks) + (interleaved
                                       ? " with the interleaved schedule"
                                       : " with a schedule that runs each stage's layers as one"),
         interleaved ? "use 2 or more, or schedule: one_f_one_b"
                     : "use schedule: interleaved_1f1b, or 1");
  }
  if (interleaved && stages == 1)
    fail("parallelism.pipeline", "1 stage with the interleaved schedule",
         "use 2 or more stages, or virtual_stages: 1");
  if (interleaved && micro_batches % stages != 0)
    fail("training.micro_batches",
         batches + " micro-batches are no multiple of the " + std::to_string(stages) +
             " pipeline stages, in groups of which the interleaved schedule runs them",
         "use a multiple of " + std::to_string(stages) + ", or virtual_stages: 1");
  if (step_.schedule != PipelineSchedule::dualpipe) return;
  if (stages % 2 != 0)
    fail("parallelism.pipeline", std::to_string(stages) + " stages with dualpipe",
         "use an even number");
  if (micro_batches % 2 != 0 || micro_batches < 2 * stages)
    fail("training.micro_batches", batches + " micro-batches with dualpipe",
         "use an even number, " + std::to_string(2 * stages) + " or more");
  if (step_.mode != StepMode::training)
    fail("training.schedule", "dualpipe is an order of training", "use mode: training");
}

void StepCheck::check_split() {
  const StageSplit& split = step_.split;
  if (layers_of_parts(model_.layers, step_)) return;
  const std::int64_t parts = VirtualPipeline(step_).length();
  const std::string layers = std::to_string(model_.layers) + " layers";
  if (!split.layers_per_stage.empty()) {
    const std::int64_t sum = std::accumulate(split.layers_per_stage.begin(),
                                             split.layers_per_stage.end(), std::int64_t{0});
    fail("parallelism.layers_per_stage",
         std::to_string(split.layers_per_stage.size()) + " numbers that sum to " +
             std::to_string(sum) + " for " + layers + " on " + std::to_string(parts) +
             " stages or model chunks",
         "give one number for each, 1 or more between the first and the last");
  } else if (split.first_stage_layers > 0 || split.last_stage_layers > 0 ||
             split.embedding_as_layer || split.head_as_layer) {
    fail("parallelism.pipeline",
         "what the other stages share of the " + layers + " is no multiple of their model chunks",
         "change first_stage_layers, last_stage_layers, embedding_as_layer or head_as_layer, or "
         "give layers_per_stage");
  } else if (step_.layout.virtual_stages == 1) {
    require_divisor("parallelism.pipeline", parts, "the layers", model_.layers);
  } else {
    fail("parallelism.virtual_stages",
         "pipeline * virtual_stages = " + std::to_string(parts) +
             " does not divide the layers = " + std::to_string(model_.layers),
         "use a product that is one of " + divisors_of(model_.layers) +
             ", or give layers_per_stage");
  }
}

/// Data-parallel, context-parallel and expert-parallel ranks.
void StepCheck::check_replicas() {
  const ParallelLayout& layout = step_.layout;
  if (layout.expert > 1) {
    require_divisor("parallelism.expert", layout.expert, "the replicas data * context",
                    layout.replicas());
    if (model_.experts == 0)
      fail("parallelism.expert", "the model has no experts", "use 1, or a model with experts");
    else
      require_divisor("parallelism.expert", layout.expert, "the experts", model_.experts);
  }
  if (layout.context == 1) return;
  if (step_.sequence_length % (2LL * layout.context) != 0)
    fail("parallelism.context",
         std::to_string(layout.context) +
             " ranks with two pieces each do not divide sequences of " +
             std::to_string(step_.sequence_length),
         "use half of one of " + divisors_of(step_.sequence_length));
  if (!uses_fused_attention(step_.framework))
    fail("parallelism.context", "unfused attention sees whole sequences",
         "use training.framework.attention: transformer_engine, flash2 or cudnn in 16 bit, or 1");
  if (step_.context_attention == ContextAttention::ulysses) {
    const std::int64_t split = std::int64_t{layout.tensor} * layout.context;
    if (model_.heads % split != 0 || model_.kv_heads % split != 0)
      fail("parallelism.context_attention",
           "ulysses spreads heads = " + std::to_string(model_.heads) +
               " and kv_heads = " + std::to_string(model_.kv_heads) +
               " over tensor * context = " + std::to_string(split) + " ranks",
           "use ring or all_gather, or sizes that divide both");
  }
}

void StepCheck::check_megatron() {
  const std::string framework = step_.framework.name;
  const bool llama = model_.family == ModelFamily::llama;
  if (model_.family != ModelFamily::gpt2 && !llama) {
    fail("framework", framework + " trains GPT and Llama models only", "use framework: hf-eager");
    return;
  }
  if (step_.mode == StepMode::forward_backward) {
    fail("mode", "forward_backward is how Hugging Face models were timed, not a Megatron step",
         "use mode: training, or framework: hf-eager");
  }
  if (step_.expert_imbalance > static_cast<double>(std::max<std::int64_t>(1, model_.experts)))
    fail("expert_imbalance", "exceeds the number of experts",
         "use 1 to " + std::to_string(std::max<std::int64_t>(1, model_.experts)));
  const bool gelu =
      model_.activation == Activation::gelu || model_.activation == Activation::gelu_new;
  const bool gated =
      model_.activation == Activation::silu || model_.activation == Activation::swiglu;
  if (llama ? !gated : !gelu && model_.activation != Activation::swiglu) {
    fail("framework",
         framework + (llama ? " runs Llama with a gated silu; " + model_.name + " has none"
                            : " knows gelu and swiglu; " + model_.name + " has neither"),
         "use framework: hf-eager");
  }
  require_divisor("parallelism.tensor", step_.layout.tensor, "the attention heads", model_.heads);
  require_divisor("parallelism.tensor", step_.layout.tensor, "the key/value heads",
                  model_.kv_heads);
  require_divisor("parallelism.tensor", step_.layout.tensor, "the feed-forward size", model_.ffn);
  if (step_.layout.sequence_parts() > 1)
    require_divisor("parallelism.tensor", step_.layout.tensor, "the sequence length",
                    step_.sequence_length);
  check_split();
  check_replicas();
}

void StepCheck::check_hugging_face() {
  constexpr const char* kHint = "use framework: megatron, or 1";
  const std::string framework = step_.framework.name;
  if (step_.layout.tensor > 1) {
    fail("parallelism.tensor",
         std::to_string(step_.layout.tensor) + ": models of " + framework +
             " are not split over GPUs",
         kHint);
  }
  if (step_.layout.sequence_parallel) {
    fail("parallelism.sequence_parallel", "models of " + framework + " are not split over GPUs",
         "use framework: megatron, or false");
  }
  if (step_.layout.pipeline > 1) {
    fail("parallelism.pipeline",
         std::to_string(step_.layout.pipeline) + ": models of " + framework +
             " are not split into stages",
         kHint);
  }
  if (step_.layout.context > 1)
    fail("parallelism.context",
         std::to_string(step_.layout.context) + ": models of " + framework + " see whole sequences",
         kHint);
  if (step_.layout.expert > 1)
    fail("parallelism.expert",
         std::to_string(step_.layout.expert) + ": models of " + framework +
             " hold all experts on every GPU",
         kHint);
  if (step_.expert_imbalance != 1 && model_.family != ModelFamily::switch_transformer)
    fail("expert_imbalance", "models of " + framework + " have no experts",
         "use framework: megatron with a model that has experts, or 1");
  if (step_.expert_imbalance != 1 && model_.family == ModelFamily::switch_transformer)
    fail("expert_imbalance",
         framework + " cuts every expert's tokens at expert_capacity, however they are spread",
         "use 1, and model.expert_capacity for another number");
  if (step_.expert_capacity_factor > 0)
    fail("expert_capacity_factor", "is Megatron's; " + framework + " has model.expert_capacity",
         "use 0");
  if (model_.family == ModelFamily::bert) {
    require_positive("max_positions", model_.max_positions);
    require_positive("token_types", model_.token_types);
  }
  const bool routed = model_.family == ModelFamily::llama || model_.family == ModelFamily::gpt2;
  if (routed && model_.experts > 0)
    fail("framework", framework + " runs no GPT or Llama with experts", "use framework: megatron");
  const bool fused = step_.framework.attention == AttentionKernels::fused_softmax;
  if (fused) fail("framework.attention", "fused_softmax is Megatron's", "use unfused, or flash2");
  const bool recomputes = step_.recompute != Recompute::none;
  if (recomputes && model_.family == ModelFamily::switch_transformer)
    fail("recompute", "Switch transformers are not recomputed", "use recompute: none");
}

}  // namespace

void check_step(const ModelSpec& model, const StepOptions& step) {
  const bool vision = model.family == ModelFamily::vision;
  std::vector<Problem> problems =
      vision ? vision_problems(model, step) : StepCheck(model, step).run();
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace tessera
