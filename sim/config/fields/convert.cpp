#include "sim/config/fields/convert.h"

#include <algorithm>

#include "sim/config/fields/message_fields.h"
#include "sim/config/micro_batches.h"

namespace tessera {
namespace {

/// What `message` gives, over `otherwise`.
template <class T>
T given_or(const google::protobuf::Message& message, T otherwise) {
  mirror(otherwise, GivenReader(message));
  return otherwise;
}

/// Likewise; a bucket that is given does not grow with the replicas, unless told to.
DataParallel data_parallel_of(const schema::DataParallel& message, DataParallel otherwise) {
  if (message.has_bucket()) otherwise.bucket_per_replica = {};
  return given_or(message, otherwise);
}

/// Everything, or nothing where it says no more than the defaults do.
void write_collectives(const CollectiveSettings& settings, schema::Scenario& message) {
  const schema::Collectives written = to_message(settings);
  const schema::Collectives plain = to_message(CollectiveSettings());
  if (written.SerializeAsString() != plain.SerializeAsString())
    *message.mutable_collectives() = written;
}

void write_perturbation(const Perturbation& perturbation, schema::Scenario& message) {
  schema::Perturbation written, plain;
  mirror(perturbation, MessageWriter(written));
  const Perturbation none;
  mirror(none, MessageWriter(plain));
  if (written.SerializeAsString() == plain.SerializeAsString()) return;
  for (schema::GpuPerturbation& gpus : *written.mutable_gpus()) {
    if (gpus.gpu().id().empty()) gpus.clear_gpu();
  }
  *message.mutable_perturbation() = written;
}

/// With stages FSDP2 gathers a unit once and reduces once, unless told otherwise.
/// Source: torchtitan, fsdp_reshard_after_forward: default; torch.distributed.pipelining stage.py.
void set_data_parallel_of_stages(const schema::DataParallel& message, StepOptions& step) {
  DataParallel& data = step.data_parallel;
  if (!step.framework.splits_stages || step.layout.pipeline <= 1) return;
  if (data.sharding == Sharding::parameters && !message.has_sharding()) {
    data.sharding = Sharding::gradients;
    if (!message.has_gather_units()) data.gather_units = true;
  }
  if (!message.has_reduce_each_micro_batch()) data.reduce_each_micro_batch = false;
}

template <class T>
T read_mirrored(const google::protobuf::Message& message) {
  T value;
  mirror(value, MessageReader(message));
  return value;
}

}  // namespace

GpuSpec to_gpu(const schema::Gpu& message) {
  return read_mirrored<GpuSpec>(message);
}
NodeSpec to_node(const schema::Node& message) {
  return read_mirrored<NodeSpec>(message);
}
ClusterSpec to_cluster(const schema::Cluster& message) {
  return read_mirrored<ClusterSpec>(message);
}

GpuOverlay to_overlay(const schema::Overlay& message) {
  return read_mirrored<GpuOverlay>(message);
}

CollectiveSettings to_collectives(const schema::Collectives& message) {
  return read_mirrored<CollectiveSettings>(message);
}

ModelSpec to_model(const schema::Model& message) {
  auto model = read_mirrored<ModelSpec>(message);
  if (!message.has_kv_heads()) model.kv_heads = model.heads;
  if (!message.has_head_dim())
    model.head_dim = model.hidden / std::max<std::int64_t>(model.heads, 1);
  if (model.family != ModelFamily::vision) return model;
  if (!message.has_image_size()) model.image_size = usual_image_size(model.architecture);
  if (!message.has_classes()) model.classes = usual_classes(model.architecture);
  return model;
}

FrameworkProfile to_framework(const schema::Framework& message) {
  auto profile = read_mirrored<FrameworkProfile>(message);
  const FrameworkProfile plain;
  profile.bf16 = given_or(message.bf16(), plain.bf16);
  profile.fp16 = given_or(message.fp16(), plain.fp16);
  profile.data_parallel = data_parallel_of(message.data_parallel(), plain.data_parallel);
  return profile;
}

StepOptions to_step(const schema::Training& message) {
  StepOptions step;
  mirror(step, MessageReader(message));
  step.framework = to_framework(message.framework());
  if (!message.has_kernels()) step.kernels = step.framework.kernels;
  step.formats = given_or(message.mixed_precision(), step.framework.formats(step.precision));
  step.data_parallel = data_parallel_of(message.data_parallel(), step.framework.data_parallel);
  return step;
}

namespace {

/// torchtitan's tensor-parallel plan has no form with whole sequences.
bool shares_sequences_anyway(const StepOptions& step) {
  return step.framework.tensor_plan == TensorPlan::sequence && step.layout.tensor > 1;
}

}  // namespace

Scenario to_scenario(const schema::Scenario& message) {
  Scenario scenario;
  scenario.name = message.name();
  scenario.model = to_model(message.model());
  scenario.cluster = to_cluster(message.cluster());
  scenario.step = to_step(message.training());
  mirror(scenario.step.layout, MessageReader(message.parallelism()));
  if (!message.parallelism().has_sequence_parallel())
    scenario.step.layout.sequence_parallel = shares_sequences_anyway(scenario.step);
  set_data_parallel_of_stages(message.training().data_parallel(), scenario.step);
  mirror(scenario.step.split, MessageReader(message.parallelism()));
  scenario.step.context_attention =
      static_cast<ContextAttention>(message.parallelism().context_attention());
  scenario.step.placement.assign(message.parallelism().placement().begin(),
                                 message.parallelism().placement().end());
  if (!message.training().has_schedule() && scenario.step.layout.virtual_stages > 1)
    scenario.step.schedule = PipelineSchedule::interleaved_1f1b;
  scenario.step.micro_batch = derived_micro_batch(message);
  scenario.predictor_form = static_cast<PredictorForm>(message.predictor().form());
  for (const schema::Overlay& overlay : message.overlays())
    scenario.overlays.push_back(to_overlay(overlay));
  scenario.collectives = to_collectives(message.collectives());
  mirror(scenario.memory, MessageReader(message.memory()));
  mirror(scenario.perturbation, MessageReader(message.perturbation()));
  mirror(scenario.simulation, MessageReader(message.simulation()));
  mirror(scenario.reliability, MessageReader(message.reliability()));
  scenario.approximations.assign(message.approximations().begin(), message.approximations().end());
  return scenario;
}

schema::Model to_message(const ModelSpec& model) {
  schema::Model message;
  mirror(model, MessageWriter(message));
  if (model.family != ModelFamily::vision) {
    message.clear_architecture();
    return message;
  }
  // What only transformers have.
  message.clear_activation();
  message.clear_hidden_dropout();
  message.clear_attention_dropout();
  message.clear_tied_embeddings();
  message.clear_qk_norm();
  message.clear_qkv_bias();
  message.clear_attention_sinks();
  message.clear_window_sinks();
  message.clear_attention_softcap();
  message.clear_logit_softcap();
  message.clear_shared_gate();
  message.clear_router_sigmoid();
  message.clear_router_bias();
  message.clear_expert_bias();
  message.clear_qk_norm_wide();
  message.clear_output_bias();
  message.clear_mlp_bias();
  message.clear_head_bias();
  message.clear_embedding_scale();
  message.clear_residual_scale();
  message.clear_logit_scale();
  message.clear_norm();
  message.clear_norm_placement();
  message.clear_block_order();
  return message;
}

schema::Cluster to_message(const ClusterSpec& cluster) {
  schema::Cluster message;
  mirror(cluster, MessageWriter(message));
  return message;
}

schema::Gpu to_message(const GpuSpec& gpu) {
  schema::Gpu message;
  mirror(gpu, MessageWriter(message));
  return message;
}

schema::Overlay to_message(const GpuOverlay& overlay) {
  schema::Overlay message;
  mirror(overlay, MessageWriter(message));
  return message;
}

schema::Host to_message(const HostTable& host) {
  schema::Host message;
  mirror(host, MessageWriter(message));
  return message;
}

schema::Collectives to_message(const CollectiveSettings& settings) {
  schema::Collectives message;
  mirror(settings, MessageWriter(message));
  return message;
}

schema::Scenario to_message(const Scenario& scenario) {
  schema::Scenario message;
  message.set_name(scenario.name);
  *message.mutable_model() = to_message(scenario.model);
  mirror(scenario.cluster, MessageWriter(*message.mutable_cluster()));
  mirror(scenario.step, MessageWriter(*message.mutable_training()));
  if (scenario.step.host == HostTable()) message.mutable_training()->clear_host();
  mirror(scenario.step.layout, MessageWriter(*message.mutable_parallelism()));
  mirror(scenario.step.split, MessageWriter(*message.mutable_parallelism()));
  using Attention = schema::Parallelism::ContextAttention;
  message.mutable_parallelism()->set_context_attention(
      static_cast<Attention>(scenario.step.context_attention));
  for (const int gpu : scenario.step.placement) message.mutable_parallelism()->add_placement(gpu);
  using Form = schema::Predictor::Form;
  message.mutable_predictor()->set_form(static_cast<Form>(scenario.predictor_form));
  for (const GpuOverlay& overlay : scenario.overlays) *message.add_overlays() = to_message(overlay);
  if (scenario.memory != MemorySettings())
    mirror(scenario.memory, MessageWriter(*message.mutable_memory()));
  write_collectives(scenario.collectives, message);
  write_perturbation(scenario.perturbation, message);
  if (scenario.simulation != SimulationSettings()) {
    mirror(scenario.simulation, MessageWriter(*message.mutable_simulation()));
  }
  if (scenario.reliability != ReliabilitySettings())
    mirror(scenario.reliability, MessageWriter(*message.mutable_reliability()));
  for (const std::string& text : scenario.approximations) message.add_approximations(text);
  return message;
}

}  // namespace tessera
