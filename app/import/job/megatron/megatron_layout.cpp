// Megatron-LM's arguments: how the job is spread over GPUs.
#include <algorithm>
#include <cctype>
#include <sstream>

#include "app/import/job/megatron/megatron_job.h"
#include "app/import/job/pipeline_layout.h"

namespace tessera {
namespace {

/// More would not fit into 64 bits, and no job has them.
std::int64_t within(std::int64_t size) {
  return std::min<std::int64_t>(size, 100'000);
}

}  // namespace

void MegatronJob::read_parallelism() {
  const char* tensor =
      given("--model-parallel-size") ? "--model-parallel-size" : "--tensor-model-parallel-size";
  tensor_ = within(integer(tensor).value_or(1));
  pipeline_ = within(integer("--pipeline-model-parallel-size").value_or(1));
  draft_.set("parallelism.tensor", tensor_);
  draft_.set("parallelism.pipeline", pipeline_);
  if (flag("--no-pipeline-parallel") && pipeline_ > 1)
    problem("--no-pipeline-parallel",
            "beside --pipeline-model-parallel-size " + std::to_string(pipeline_), "keep one");
  const bool parts = flag("--sequence-parallel");
  if (parts) draft_.set("parallelism.sequence_parallel", "true");
  const bool beside = flag("--tp-comm-overlap");
  if (beside && tensor_ > 1 && parts) set_profile("overlap_tensor_products", "true");
  if (flag("--use-tp-pp-dp-mapping")) draft_.set_text("parallelism.order", "tp-cp-ep-pp-dp");
  read_context();
  read_stages();
  read_batch();
  read_expert_layout();
}

/// Ranks that share sequences: Megatron's ring and its others, DeepSpeed's Ulysses.
void MegatronJob::read_context() {
  const std::int64_t ulysses = within(integer("--ds-sequence-parallel-size").value_or(1));
  context_ = within(integer("--context-parallel-size").value_or(1));
  in_.take("--force-ds-sequence-parallel");
  if (ulysses > 1 && context_ > 1)
    problem("--ds-sequence-parallel-size", "beside --context-parallel-size", "keep one");
  if (ulysses > 1) context_ = ulysses;
  if (context_ == 1) return;
  const std::string how = ulysses > 1 ? "a2a" : text("--cp-comm-type").value_or("p2p");
  draft_.set("parallelism.context", context_);
  const std::string way = how == "p2p"                                ? "ring"
                          : how == "a2a"                              ? "ulysses"
                          : how == "all_gather" || how == "allgather" ? "all_gather"
                                                                      : "";
  if (way.empty()) return cannot("--cp-comm-type", "is not simulated: p2p, a2a, all_gather are");
  draft_.set("parallelism.context_attention", way);
}

void MegatronJob::read_expert_layout() {
  const char* argument = given("--expert-model-parallel-size") ? "--expert-model-parallel-size"
                                                               : "--moe-expert-parallel-size";
  const std::int64_t expert = within(integer(argument).value_or(1));
  const auto parts = integer("--expert-tensor-parallel-size");
  if (!has_experts_ && expert > 1)
    problem(argument, "is " + std::to_string(expert) + ", and the model has no experts",
            "add --num-experts, or take it out: Megatron-LM does not start");
  if (!has_experts_) return;
  if (expert > 1) draft_.set("parallelism.expert", expert);
  if (parts && (*parts > 1 || tensor_ > 1)) draft_.set("parallelism.expert_tensor", *parts);
  const auto dispatcher = text("--moe-token-dispatcher-type");
  const bool spread = expert > 1 || tensor_ > 1;
  if (flag("--moe-permute-fusion") && dispatcher.value_or("") == "alltoall")
    set_profile("expert_dispatcher", "all_to_all_fused");
  if (dispatcher && *dispatcher == "flex")
    read_flexible_dispatcher(expert);
  else if (dispatcher && *dispatcher != "alltoall" && spread)
    cannot("--moe-token-dispatcher-type", "is not simulated: alltoall and flex are");
  if (flag("--overlap-moe-expert-parallel-comm") && expert > 1) {
    set_profile("overlap_experts", "true");
    if (flag("--delay-wgrad-compute"))
      draft_.approximate("--delay-wgrad-compute: gradients of weights are not delayed");
  }
  if (!dispatcher && !deepspeed_ && spread)
    cannot("--moe-token-dispatcher-type",
           "is missing: its default, allgather, is not simulated, alltoall is");
}

/// DeepEP by default, as --moe-enable-deepep said before there were others.
void MegatronJob::read_flexible_dispatcher(std::int64_t expert) {
  const std::string backend = text("--moe-flex-dispatcher-backend").value_or("deepep");
  flag("--moe-enable-deepep");
  if (backend != "deepep" && backend != "hybridep")
    return cannot("--moe-flex-dispatcher-backend", "is not simulated: deepep and hybridep are");
  if (expert > 1) set_profile("expert_dispatcher", backend);
}

/// Stages that are told their layers by --decoder-first-pipeline-num-layers and its like may have
/// more than the others.
std::int64_t MegatronJob::layers_of_part() {
  if (most_of_part_ > 0) return most_of_part_;
  const auto first = integer("--decoder-first-pipeline-num-layers");
  const auto last = integer("--decoder-last-pipeline-num-layers");
  const std::int64_t stages = pipeline_ - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t inner = layers_ - first.value_or(0) - last.value_or(0);
  const auto of_chunk = [this](std::int64_t layers, std::int64_t parts) {
    const std::int64_t chunks = std::max<std::int64_t>(1, parts * chunks_);
    return (std::max<std::int64_t>(layers, 0) + chunks - 1) / chunks;
  };
  return std::max(
      {of_chunk(inner, stages), of_chunk(first.value_or(0), 1), of_chunk(last.value_or(0), 1)});
}

void MegatronJob::read_stages() {
  const bool embedding = flag("--account-for-embedding-in-pipeline-split");
  const bool loss = flag("--account-for-loss-in-pipeline-split");
  if (const auto layout = text("--pipeline-model-parallel-layout")) {
    read_layout_text(*layout);
  } else {
    if (paired_ && (embedding || loss))
      cannot(embedding ? "--account-for-embedding-in-pipeline-split"
                       : "--account-for-loss-in-pipeline-split",
             "is not simulated beside delta nets, of whose layers each is two");
    if (embedding) draft_.set("parallelism.embedding_as_layer", "true");
    if (loss) draft_.set("parallelism.head_as_layer", "true");
    if (const auto layers = integer("--decoder-first-pipeline-num-layers"))
      draft_.set("parallelism.first_stage_layers", layers_of_model(*layers));
    if (const auto layers = integer("--decoder-last-pipeline-num-layers"))
      draft_.set("parallelism.last_stage_layers", layers_of_model(*layers));
    read_virtual_stages();
    read_partition_method();
  }
  if (chunks_ > 1) draft_.set("parallelism.virtual_stages", chunks_);
  const auto group = integer("--microbatch-group-size-per-virtual-pipeline-stage");
  if (group && *group != pipeline_ && chunks_ > 1)
    cannot("--microbatch-group-size-per-virtual-pipeline-stage",
           "is not --pipeline-model-parallel-size, which is what is simulated");
}

/// Chunks per stage. Embedding and loss count as layers where they take the place of one.
void MegatronJob::read_virtual_stages() {
  const auto chunks = integer("--num-virtual-stages-per-pipeline-rank");
  const auto layers = integer("--num-layers-per-virtual-pipeline-stage");
  if (chunks) chunks_ = within(*chunks);
  if (chunks || !layers || pipeline_ == 1) return;
  const std::int64_t all = layers_ + (given("--account-for-embedding-in-pipeline-split") ? 1 : 0) +
                           (given("--account-for-loss-in-pipeline-split") ? 1 : 0);
  const std::int64_t of_stage = all / pipeline_;
  if (all % pipeline_ != 0 || of_stage % *layers != 0)
    problem("--num-layers-per-virtual-pipeline-stage",
            "is " + std::to_string(*layers) + ": " + std::to_string(all) + " layers on " +
                std::to_string(pipeline_) + " stages are no whole number of such chunks",
            "use a divisor of the layers of a stage");
  chunks_ = within(std::max<std::int64_t>(1, of_stage / *layers));
}

/// Which parts of the model DeepSpeed's pipeline counts.
void MegatronJob::read_partition_method() {
  const std::string method = text("--pp-partition-method").value_or("type:transformer");
  if (method == "type:transformer") return;
  const bool with_embedding =
      method == "type:transformer|embedding" || method == "type:embedding|transformer";
  if (!with_embedding)
    return cannot("--pp-partition-method",
                  "is not simulated: type:transformer and type:transformer|embedding are");
  draft_.set("parallelism.embedding_as_layer", "true");
  // A head that is not the embedding once more is no embedding to DeepSpeed.
  if (!flag("--untie-embeddings-and-output-weights"))
    draft_.set("parallelism.head_as_layer", "true");
}

void MegatronJob::read_layout_text(const std::string& layout) {
  const char* name = "--pipeline-model-parallel-layout";
  const PipelineLayout parts = parse_pipeline_layout(layout);
  if (!parts.fault.empty()) return problem(name, "is " + layout + ": " + parts.fault, "mend it");
  const std::int64_t further = is_llama_ ? integer("--mtp-num-layers", 0).value_or(0) : 0;
  const int placed = parts.predicts_more;
  if (placed > 0 && further > 0 && placed != further)
    problem(name,
            "places " + std::to_string(placed) + " layers that predict further tokens (m) of " +
                std::to_string(further) + " in --mtp-num-layers",
            "mend one of them");
  if (placed > 0 && further == 0)
    cannot(name, "has layers that predict further tokens (m), and the model has none",
           "add --mtp-num-layers to a model with --normalization RMSNorm, or take out m");
  const auto stages = static_cast<std::int64_t>(parts.layers.size());
  const bool ahead = parts.predicts_ahead && further > 0;
  const auto inner_end = parts.layers.end() - (ahead ? 2 : 1);
  if (stages > 2 && std::find(parts.layers.begin() + 1, inner_end, 0) != inner_end)
    return problem(name, "has a stage without a layer (t) between others, which is not simulated",
                   "leave no stage empty");
  if (stages % pipeline_ != 0)
    return problem(name,
                   "has " + std::to_string(stages) + " stages, no multiple of the " +
                       std::to_string(pipeline_) + " of --pipeline-model-parallel-size",
                   "mend one of them");
  chunks_ = stages / pipeline_;
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  for (const int layers : parts.layers) {
    YamlNode& item = list.items.emplace_back();
    item.kind = YamlNode::Kind::scalar;
    item.text = std::to_string(layers_of_model(layers));
    most_of_part_ = std::max<std::int64_t>(most_of_part_, layers);
  }
  if (pipeline_ * chunks_ > 1) draft_.set("parallelism.layers_per_stage", std::move(list));
  if (ahead) draft_.set("parallelism.mtp_ahead", "true");
}

/// GPUs of the job: told, or those of one replica.
std::int64_t MegatronJob::read_gpus(std::int64_t replica) {
  std::int64_t gpus = options_.gpus > 0 ? options_.gpus : gpus_of(launch_, script_.variables);
  for (const Problem& one : launch_.launcher.problems()) in_.add_problem(one);
  if (const auto other = told_otherwise(launch_, script_.variables, options_.gpus))
    draft_.assume(*other);
  const bool told = options_.gpus > 0 || launch_.launcher.has("--nproc_per_node") ||
                    launch_.launcher.has("--nproc-per-node") || launch_.launcher.has("--num_gpus");
  if (!told && !launch_.unknown.empty())
    in_.add_problem({launch_.where,
                     "the launcher gets " + launch_.unknown + ", which may say how many GPUs run",
                     hint_for_unknown(launch_.unknown, script_) + ", or --gpus"});
  if (gpus == 0) {
    gpus = replica;
    draft_.assume("one replica on " + std::to_string(gpus) + " GPUs; --gpus gives the number");
  }
  if (gpus % replica != 0)
    problem("--tensor-model-parallel-size",
            "* pipeline * context = " + std::to_string(replica) + " does not divide the " +
                std::to_string(gpus) + " GPUs of the job",
            "mend one of them, or give --gpus");
  return gpus;
}

void MegatronJob::read_batch() {
  const char* argument = given("--batch-size") && !given("--micro-batch-size")
                             ? "--batch-size"  // of 2020 and 2021
                             : "--micro-batch-size";
  micro_batch_ = options_.micro_batch > 0 ? options_.micro_batch : needed(argument);
  const std::int64_t replica = tensor_ * pipeline_ * context_;
  const std::int64_t gpus = read_gpus(replica);
  const std::int64_t data = std::max<std::int64_t>(1, gpus / replica);
  replicas_ = data * context_;
  draft_.set("parallelism.data", data);
  draft_.set("training.micro_batch", micro_batch_);
  const auto global = integer("--global-batch-size");
  if (given("--rampup-batch-size")) {
    text("--rampup-batch-size");
    draft_.assume("the batch that --rampup-batch-size ends with");
  }
  if (options_.global_batch == 0 && !global)
    draft_.assume("one micro-batch per replica: there is no --global-batch-size");
  draft_.set("training.global_batch", options_.global_batch > 0
                                          ? options_.global_batch
                                          : global.value_or(within(micro_batch_) * data));
  set_cluster_of_launch(gpus);
  note_mask();
}

/// As many nodes as the script starts.
void MegatronJob::set_cluster_of_launch(std::int64_t gpus) {
  JobOptions options = options_;
  if (options_.gpus == 0) options.job_nodes = nodes_of(launch_, script_.variables);
  set_cluster(draft_, options, gpus);
}

void MegatronJob::note_mask() {
  if (in_.flag("--no-create-attention-mask-in-dataloader") && sequence_ <= 1'000'000) {
    const std::int64_t rows = sequence_ / context_;
    draft_.approximate("--no-create-attention-mask-in-dataloader: the mask of " +
                       std::to_string(within(micro_batch_) * rows * rows / (1 << 20)) +
                       " MiB is counted in the memory");
  }
}

}  // namespace tessera
