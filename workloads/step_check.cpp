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
    if (step_.framework == FrameworkProfile::megatron_local) {
      check_megatron();
    } else {
      check_hf_eager();
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
  void check_hf_eager();

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
  if (step_.precision == Precision::fp32 || step_.precision == Precision::tf32) return;
  fail("precision",
       std::string(name_of(step_.precision)) + " is not known to the framework profiles",
       "use fp32 or tf32");
}

void StepCheck::check_megatron() {
  if (model_.family != ModelFamily::gpt2) {
    fail("framework", "megatron_local trains GPT models only", "use framework: hf_eager");
    return;
  }
  if (step_.mode == StepMode::forward_backward) {
    fail("mode", "forward_backward is how Hugging Face models were timed, not a Megatron step",
         "use mode: training, or framework: hf_eager");
  }
  if (model_.activation != Activation::gelu && model_.activation != Activation::gelu_new) {
    fail("framework", "megatron_local fuses bias and gelu; " + model_.name + " has no gelu",
         "use framework: hf_eager");
  }
  require_divisor("parallelism.tensor", step_.layout.tensor, "the attention heads", model_.heads);
  require_divisor("parallelism.tensor", step_.layout.tensor, "the feed-forward size", model_.ffn);
  require_divisor("parallelism.pipeline", step_.layout.pipeline, "the layers", model_.layers);
}

void StepCheck::check_hf_eager() {
  constexpr const char* kHint = "use framework: megatron_local, or 1";
  if (step_.layout.tensor > 1) {
    fail("parallelism.tensor",
         std::to_string(step_.layout.tensor) + ": hf_eager models are not split over GPUs", kHint);
  }
  if (step_.layout.pipeline > 1) {
    fail("parallelism.pipeline",
         std::to_string(step_.layout.pipeline) + ": hf_eager models are not split into stages",
         kHint);
  }
}

}  // namespace

void check_step(const ModelSpec& model, const StepOptions& step) {
  std::vector<Problem> problems = StepCheck(model, step).run();
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace tessera
