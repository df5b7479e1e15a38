// What schedules, layer splits, experts and contexts ask of a layout.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>

#include "sim/scenario/rules/counts.h"
#include "sim/scenario/rules/framework_rules.h"
#include "workloads/families/modules.h"
#include "workloads/parallel/cost_split.h"
#include "workloads/parallel/layer_split.h"
#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {

/// Of every number of micro-batches that a replica has.
void FrameworkRules::check_schedule() {
  check_schedule_of(step_.micro_batches());
  const std::vector<int>& counts = step_.split.micro_batches_per_replica;
  for (const int count : std::set<int>(counts.begin(), counts.end()))
    if (problems_.empty() && count != step_.micro_batches()) check_schedule_of(count);
}

void FrameworkRules::check_schedule_of(std::int64_t micro_batches) {
  const int stages = step_.layout.pipeline;
  const int chunks = step_.layout.virtual_stages;
  const std::string batches = std::to_string(micro_batches);
  const bool interleaved = step_.schedule == PipelineSchedule::interleaved_1f1b;
  if (step_.schedule == PipelineSchedule::zbv) return check_v();
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

/// What the schedule over chunks in a V asks for. Where no layout of the job has it, nothing is
/// said of the layout.
void FrameworkRules::check_v() {
  const bool llama = model_.family == ModelFamily::llama;
  if (!llama || !step_.framework.splits_stages)
    return fail("training.schedule",
                "zbv is torch.distributed.pipelining's (ZBVZeroBubble), whose stages torchtitan "
                "has of Llamas alone",
                llama ? "use framework: torchtitan and virtual_stages: 2, or schedule: zb_h1"
                      : "use schedule: zb_h1, of framework: megatron");
  if (step_.layout.virtual_stages != 2 || step_.layout.pipeline < 2)
    fail("parallelism.virtual_stages",
         std::to_string(step_.layout.virtual_stages) + " on " +
             std::to_string(step_.layout.pipeline) +
             " stages with zbv, whose stages hold the two "
             "sides of a V",
         "use 2, and 2 stages or more");
  if (step_.mode != StepMode::training)
    fail("training.schedule", "zbv is an order of training", "use mode: training");
}

void FrameworkRules::check_split() {
  const StageSplit& split = step_.split;
  if (uses_cost_split(step_)) return check_cost_split();
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
         "use a product of " + listed_values(divisors(model_.layers, model_.layers)) +
             ", or give layers_per_stage");
  }
}

void FrameworkRules::check_cost_split() {
  const int stages = step_.layout.pipeline;
  if (!split_by_cost(model_, stages, step_.framework.fills_past_share))
    fail("parallelism.pipeline",
         std::to_string(stages) + " stages of equal cost leave some without a part of " +
             model_.name + ", or part its logits from the norm ahead of them",
         "use fewer stages, or give parallelism.layers_per_stage");
  if (model_.mtp_layers > 0 || model_.experts > 0)
    fail("parallelism.pipeline", step_.framework.name + " splits dense models by cost alone",
         "give parallelism.layers_per_stage");
}

/// Ranks that share the experts, and parts of each.
void FrameworkRules::check_experts() {
  const ParallelLayout& layout = step_.layout;
  const int parts = layout.expert_tensor;
  if (model_.experts == 0) {
    constexpr const char* kWhat = "the model has no experts";
    if (layout.expert > 1) fail("parallelism.expert", kWhat, "use 1, or a model with experts");
    if (parts > 0)
      fail("parallelism.expert_tensor", kWhat, "leave it out, or use a model with experts");
    return;
  }
  const std::string number = std::to_string(parts);
  if (layout.cuts_experts_apart() && layout.tensor > 1 && !layout.sequence_parallel)
    fail("parallelism.expert_tensor",
         number + ": every tensor-parallel rank would send the same tokens to the experts",
         "use sequence_parallel: true, with which each sends its part of the sequence");
  const bool once = sends_tokens_once(step_.framework.expert_dispatcher) && layout.expert > 1;
  if (once && parts > 1 && parts != layout.tensor)
    fail("parallelism.expert_tensor",
         number + " under a dispatcher that sends tokens once for each rank is not simulated",
         "use training.framework.expert_dispatcher: all_to_all, or expert_tensor: 1");
  require_divisor("parallelism.expert_tensor", layout.expert_parts(),
                  "the ranks tensor * data * context", layout.tensor * layout.replicas());
  require_divisor("parallelism.expert", layout.expert,
                  layout.cuts_experts_apart() ? "the ranks tensor * data * context / expert_tensor"
                                              : "the replicas data * context",
                  layout.expert_places());
  require_divisor("parallelism.expert", layout.expert, "the experts", model_.experts);
}

/// Context-parallel ranks.
void FrameworkRules::check_context() {
  const ParallelLayout& layout = step_.layout;
  if (layout.context == 1) return;
  const std::int64_t halves = step_.sequence_length % 2 == 0 ? step_.sequence_length / 2 : 1;
  if (step_.sequence_length % (2LL * layout.context) != 0)
    fail("parallelism.context",
         std::to_string(layout.context) +
             " ranks with two pieces each do not divide sequences of " +
             std::to_string(step_.sequence_length),
         "use " + listed_values(divisors(halves, halves)));
  if (!uses_fused_attention(step_.framework))
    fail("parallelism.context", "unfused attention sees whole sequences",
         "use training.framework.attention: transformer_engine, flash2 or cudnn in 16 bit, or 1");
  if (step_.context_attention == ContextAttention::ulysses) {
    const std::int64_t split = std::int64_t{layout.tensor} * layout.context;
    if (model_.heads % split != 0 || model_.kv_heads % split != 0 ||
        model_.window_kv_heads % split != 0)
      fail("parallelism.context_attention",
           "ulysses spreads heads = " + std::to_string(model_.heads) +
               " and kv_heads = " + std::to_string(model_.kv_heads) +
               " over tensor * context = " + std::to_string(split) + " ranks",
           "use ring or all_gather, or sizes that divide both");
  }
}

}  // namespace tessera
