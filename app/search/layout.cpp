#include "app/search/layout.h"

#include <string_view>

#include "sim/scenario/names.h"

namespace tessera {
void apply(const Layout& layout, StepOptions& step) {
  step.layout.tensor = layout.tensor;
  step.layout.pipeline = layout.pipeline;
  step.layout.virtual_stages = layout.virtual_stages;
  step.layout.data = layout.data;
  step.layout.context = layout.context;
  step.layout.expert = layout.expert;
  step.layout.sequence_parallel = layout.sequence_parallel;
  step.data_parallel.sharding = layout.sharding;
  step.data_parallel.gather_units = layout.gather_units;
  step.schedule = layout.schedule;
  step.recompute = layout.recompute;
  step.micro_batch = layout.micro_batch;
  if (layout.ends_as_layers) step.split.embedding_as_layer = step.split.head_as_layer = true;
}

MemorySettings with_plan(MemorySettings memory) {
  memory.planner = MemoryPlanner::tessera;
  memory.thorough = false;
  return memory;
}

Scenario laid_out(const Scenario& base, const Layout& layout) {
  Scenario scenario = base;
  apply(layout, scenario.step);
  if (layout.planned) scenario.memory = with_plan(scenario.memory);
  return scenario;
}

std::string to_text(const Layout& layout) {
  std::string text;
  const auto add = [&](const char* name, int size) {
    if (size > 1) text += std::string(text.empty() ? "" : " ") + name + " " + std::to_string(size);
  };
  add("tp", layout.tensor);
  add("pp", layout.pipeline);
  if (layout.virtual_stages > 1) text += " x " + std::to_string(layout.virtual_stages);
  add("dp", layout.data);
  add("cp", layout.context);
  add("ep", layout.expert);
  if (layout.sequence_parallel) text += " sp";
  if (layout.ends_as_layers) text += ", ends as layers";
  if (text.empty()) text = "one GPU";
  text += ", micro-batch " + std::to_string(layout.micro_batch);
  const bool named = layout.schedule != PipelineSchedule::one_f_one_b && layout.virtual_stages == 1;
  if (named) text += ", " + std::string(name_of(layout.schedule));
  if (layout.gather_units)
    text += ", SHARD_GRAD_OP";
  else if (layout.sharding != Sharding::none)
    text += ", ZeRO-" + std::to_string(static_cast<int>(layout.sharding));
  if (layout.recompute != Recompute::none)
    text += ", recompute " + std::string(name_of(layout.recompute));
  if (layout.planned) text += ", memory plan";
  return text;
}

std::string to_settings(const Layout& layout) {
  std::string text;
  const auto add = [&](const std::string& path, const auto& value) {
    text += (text.empty() ? "" : " ") + path + "=" + std::string(value);
  };
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  add("parallelism.tensor", number(layout.tensor));
  add("parallelism.pipeline", number(layout.pipeline));
  add("parallelism.virtual_stages", number(layout.virtual_stages));
  add("parallelism.data", number(layout.data));
  add("parallelism.context", number(layout.context));
  add("parallelism.expert", number(layout.expert));
  add("parallelism.sequence_parallel", layout.sequence_parallel ? "true" : "false");
  add("training.data_parallel.sharding", name_of(layout.sharding));
  if (layout.gather_units) add("training.data_parallel.gather_units", "true");
  add("training.schedule", name_of(layout.schedule));
  add("training.recompute", name_of(layout.recompute));
  add("training.micro_batch", number(layout.micro_batch));
  if (layout.ends_as_layers) {
    add("parallelism.embedding_as_layer", "true");
    add("parallelism.head_as_layer", "true");
  }
  if (layout.planned) {
    add("memory.planner", "tessera");
    add("memory.thorough", "false");
  }
  return text;
}

}  // namespace tessera
