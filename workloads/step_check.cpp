#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/input_error.h"
#include "workloads/model_graph.h"

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
    require_divisor("kv_heads", model_.kv_heads, "the attention heads", model_.heads);
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
  void check_megatron();
  void check_hugging_face();

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
  require_divisor("parallelism.pipeline", step_.layout.pipeline, "the layers", model_.layers);
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
  if (step_.layout.pipeline > 1) {
    fail("parallelism.pipeline",
         std::to_string(step_.layout.pipeline) + ": models of " + framework +
             " are not split into stages",
         kHint);
  }
  if (model_.family == ModelFamily::llama && model_.experts > 0)
    fail("framework", framework + " runs no Llama with experts", "use framework: megatron");
  const bool fused = step_.framework.attention == AttentionKernels::fused_softmax;
  if (fused) fail("framework.attention", "fused_softmax is Megatron's", "use unfused, or flash2");
  const bool recomputes = step_.recompute != Recompute::none;
  if (recomputes && model_.family == ModelFamily::switch_transformer)
    fail("recompute", "Switch transformers are not recomputed", "use recompute: none");
}

}  // namespace

void check_step(const ModelSpec& model, const StepOptions& step) {
  std::vector<Problem> problems = StepCheck(model, step).run();
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace tessera
