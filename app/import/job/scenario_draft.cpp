#include "app/import/job/scenario_draft.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace tessera {
namespace {

YamlNode mapping() {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  return node;
}

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

/// The value at `path` below `node`, made where it is missing.
YamlNode& place_of(YamlNode& node, std::string_view path) {
  const auto dot = path.find('.');
  const std::string key(path.substr(0, dot));
  YamlNode* below = nullptr;
  for (YamlEntry& entry : node.entries) {
    if (entry.key == key) below = &entry.value;
  }
  if (!below) {
    node.entries.push_back({key, {}, mapping()});
    below = &node.entries.back().value;
  }
  return dot == std::string_view::npos ? *below : place_of(*below, path.substr(dot + 1));
}

/// Nodes of a shipped cluster of DGX H100, eight GPUs each, whose network serves fewer as well.
struct ShippedCluster {
  std::int64_t nodes;
  const char* id;
};
constexpr std::array<ShippedCluster, 5> kClusters{{{1, "dgx-h100"},
                                                   {2, "dgx-h100-x2"},
                                                   {8, "dgx-h100-x8-rail"},
                                                   {128, "dgx-superpod-h100"},
                                                   {3072, "llama3-24k"}}};

/// DeepSpeed's rule for the three sizes that a file may give.
void check_sizes(ForeignFields& fields, const BatchSizes& sizes, std::int64_t replicas) {
  if (sizes.global == 0 || sizes.micro == 0 || sizes.accumulation == 0) return;
  const std::int64_t product = sizes.micro * sizes.accumulation * replicas;
  if (product == sizes.global) return;
  fields.refuse("train_batch_size",
                "is " + std::to_string(sizes.global) + ", not " + std::to_string(sizes.micro) +
                    " per GPU * " + std::to_string(sizes.accumulation) + " micro-batches * " +
                    std::to_string(replicas) + " replicas",
                "correct the file, or give --gpus");
}

/// The job's own nodes, where they hold another number of GPUs than those that are simulated.
std::string other_nodes(const JobOptions& options, std::int64_t gpus, std::int64_t per_node) {
  const std::int64_t nodes = options.job_nodes;
  if (nodes <= 1 || gpus % nodes != 0 || gpus / nodes == per_node) return "";
  return "; the job's " + std::to_string(nodes) + " nodes of " + std::to_string(gpus / nodes) +
         " GPUs are " + std::to_string((gpus + per_node - 1) / per_node) + " of " +
         std::to_string(per_node) + " there";
}

/// The cluster of the options, with as many nodes as they say, or as the job takes where it has
/// fewer.
void set_named_cluster(ScenarioDraft& draft, const JobOptions& options, std::int64_t gpus) {
  const bool told = options.nodes > 0 || options.gpus > 0;
  const bool grows = !told && options.node_gpus > 0 && gpus > options.cluster_gpus;
  const std::int64_t per_node = std::max<std::int64_t>(options.node_gpus, 1);
  const std::string others = options.node_gpus > 0 ? other_nodes(options, gpus, per_node) : "";
  const std::int64_t nodes = grows ? (gpus + per_node - 1) / per_node : options.nodes;
  if (grows)
    draft.assume(std::to_string(nodes) + " nodes of " + options.cluster + ", for the job's " +
                 std::to_string(gpus) + " GPUs: it has " + std::to_string(options.cluster_gpus) +
                 "; --nodes gives another number" + others);
  else if (!others.empty())
    draft.assume("cluster " + options.cluster + others);
  if (nodes == 0) return draft.set_text("cluster", options.cluster);
  draft.set_text("cluster.extends", options.cluster);
  draft.set("cluster.node_count", nodes);
}

}  // namespace

void ScenarioDraft::set(std::string_view path, const std::string& value) {
  set(path, scalar(value));
}

void ScenarioDraft::set_text(std::string_view path, const std::string& value) {
  YamlNode node = scalar(value);
  node.quoted = true;
  set(path, std::move(node));
}

void ScenarioDraft::set(std::string_view path, YamlNode value) {
  place_of(job_.scenario, path) = std::move(value);
}

void ScenarioDraft::set_in_framework(const std::string& field, const std::string& value) {
  YamlNode& framework = place_of(job_.scenario, "training.framework");
  if (framework.kind == YamlNode::Kind::scalar) {
    YamlNode base = std::move(framework);
    base.quoted = true;
    framework = mapping();
    framework.entries.push_back({"extends", {}, std::move(base)});
  }
  set("training.framework." + field, value);
}

std::string ScenarioDraft::said(std::string_view path) const {
  const YamlNode* node = &job_.scenario;
  while (node && !path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const YamlEntry* entry = node->find(path.substr(0, end));
    node = entry ? &entry->value : nullptr;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return node ? node->text : "";
}

void ScenarioDraft::approximate(const std::string& line) {
  std::string text = line;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  job_.approximate.push_back(text);
}

ImportedJob ScenarioDraft::finish(const ForeignFields& fields) {
  fields.finish();
  for (const std::string& line : fields.unread()) ignore(line);
  if (job_.approximate.empty()) return std::move(job_);
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  for (const std::string& line : job_.approximate) {
    list.items.push_back(scalar(line));
    list.items.back().quoted = true;
  }
  set("approximations", std::move(list));
  return std::move(job_);
}

void leave_out(ScenarioDraft& draft, ForeignFields& fields, const JobOptions& options,
               const std::string& name, const std::string& what, const std::string& hint) {
  const std::string value = fields.text(name).value_or("");
  fields.take(name);  // asked for, with or without a value
  if (!options.lenient) return fields.refuse(name, what, hint);
  draft.approximate(name + (value.empty() ? "" : " = " + value) + " " + what);
}

void say_left_out(ScenarioDraft& draft, const JobOptions& options) {
  for (const std::string& line : options.left_out) draft.approximate(line);
  for (const std::string& line : options.left_aside) draft.ignore(line);
}

void assume_precision(ScenarioDraft& draft, const JobOptions& options, bool all_of_it) {
  draft.set("training.precision", options.precision);
  const bool usual = options.precision == "bf16";
  const std::string of_all =
      all_of_it ? ", of weights and optimizer states too (torch_dtype); the Trainer's bf16=True "
                  "keeps them in fp32: give its script or its arguments in a file"
                : "";
  draft.assume("precision " + options.precision +
               (usual ? of_all : ": the GPUs of the cluster have no bf16"));
}

void set_cluster(ScenarioDraft& draft, const JobOptions& options, std::int64_t gpus) {
  if (!options.cluster.empty()) return set_named_cluster(draft, options, gpus);
  constexpr std::int64_t kGpusOfNode = 8;
  const std::int64_t nodes = (gpus + kGpusOfNode - 1) / kGpusOfNode;
  ShippedCluster cluster = kClusters.back();
  for (const ShippedCluster& shipped : kClusters) {
    if (nodes > shipped.nodes) continue;
    cluster = shipped;
    break;
  }
  const std::string id(cluster.id);
  const std::string hint =
      ": it is not in the file; --cluster names another" + other_nodes(options, gpus, kGpusOfNode);
  if (nodes >= cluster.nodes) {
    draft.set_text("cluster", id);
    return draft.assume("cluster " + id + hint);
  }
  draft.set_text("cluster.extends", id);
  draft.set_text("cluster.id", "dgx-h100-x" + std::to_string(nodes));
  draft.set("cluster.node_count", nodes);
  draft.assume("cluster of " + std::to_string(nodes) + " nodes of " + id + hint);
}

namespace {

constexpr std::int64_t kMostOfASize = 100'000'000;  // products of sizes stay within 64 bits

/// What the command line says stands ahead of what the file says.
void take_options(ScenarioDraft& draft, const JobOptions& options, BatchSizes& sizes) {
  for (std::int64_t* size : {&sizes.global, &sizes.micro, &sizes.accumulation})
    *size = std::min(*size, kMostOfASize);
  if (options.global_batch > 0) sizes.global = options.global_batch;
  if (options.micro_batch > 0) sizes.micro = options.micro_batch;
  if (options.gpus > 0 && sizes.gpus > 0 && sizes.gpus != options.gpus)
    draft.assume(std::to_string(options.gpus) + " GPUs, as --gpus says: the file has " +
                 std::to_string(sizes.gpus));
  if (options.gpus > 0) sizes.gpus = options.gpus;
}

/// GPUs that nobody names: those that the batch asks for, or all whole replicas of the cluster.
void infer_gpus(ScenarioDraft& draft, const JobOptions& options, std::int64_t turns,
                BatchSizes& sizes) {
  if (sizes.gpus == 0 && sizes.global > 0 && sizes.micro > 0 && sizes.accumulation > 0)
    sizes.gpus = sizes.global / std::min(kMostOfASize, sizes.micro * turns) * sizes.width;
  if (sizes.gpus > 0 || options.cluster_gpus == 0) return;
  sizes.gpus = options.cluster_gpus - options.cluster_gpus % sizes.width;
  const std::int64_t rest = options.cluster_gpus - sizes.gpus;
  if (sizes.gpus > 1)
    draft.assume((rest > 0 ? "" : "all ") + std::to_string(sizes.gpus) + " GPUs of the cluster" +
                 (rest > 0 ? " of " + std::to_string(options.cluster_gpus) : "") +
                 ": --gpus gives fewer");
}

}  // namespace

void set_data_parallel_job(ScenarioDraft& draft, ForeignFields& fields, const JobOptions& options,
                           BatchSizes sizes) {
  take_options(draft, options, sizes);
  const auto fall_back = [&](std::int64_t& size, const std::string& what) {
    if (size > 0) return;
    size = 1;
    draft.assume(what);
  };
  const std::int64_t turns = std::max<std::int64_t>(sizes.accumulation, 1);
  infer_gpus(draft, options, turns, sizes);
  fall_back(sizes.gpus, "1 GPU; --gpus gives the number");
  if (sizes.gpus % sizes.width != 0)
    fields.refuse("the job",
                  "has " + std::to_string(sizes.gpus) + " GPUs, no multiple of the " +
                      std::to_string(sizes.width) + " that share a replica",
                  "give --gpus");
  const std::int64_t replicas = std::clamp<std::int64_t>(sizes.gpus / sizes.width, 1, kMostOfASize);
  if (sizes.micro == 0 && sizes.global > 0) sizes.micro = sizes.global / replicas / turns;
  fall_back(sizes.micro, "1 sequence per GPU and micro-batch; --micro-batch gives another number");
  if (options.global_batch == 0 && options.micro_batch == 0) check_sizes(fields, sizes, replicas);
  if (sizes.global == 0) sizes.global = sizes.micro * replicas * turns;
  draft.set("training.global_batch", sizes.global);
  draft.set("training.micro_batch", sizes.micro);
  draft.set("parallelism.data", replicas);
  JobOptions of_cluster = options;
  if (sizes.nodes > 0) of_cluster.job_nodes = sizes.nodes;
  set_cluster(draft, of_cluster, sizes.gpus);
}

void set_model_and_framework(ScenarioDraft& draft, const JobOptions& options,
                             const std::string& name, const std::string& assumed_framework) {
  set_framework(draft, options, name, assumed_framework);
  set_sequence_length(draft, options);
}

void set_framework(ScenarioDraft& draft, const JobOptions& options, const std::string& name,
                   const std::string& assumed_framework) {
  if (options.model.empty())
    throw InputError({name, "does not describe the model",
                      "add --model with an id of tessera list models, a file or a config.json"});
  draft.set_text("name", std::filesystem::path(name).stem().string());
  draft.set_text("model", options.model);
  if (options.framework.empty())
    draft.assume("framework " + assumed_framework +
                 ": kernels are not in the file; --framework names another");
  draft.set_text("training.framework",
                 options.framework.empty() ? assumed_framework : options.framework);
}

void set_sequence_length(ScenarioDraft& draft, const JobOptions& options) {
  std::int64_t length = options.sequence_length;
  if (length == 0) {
    length = options.longest_sequence > 0 ? std::min<std::int64_t>(2048, options.longest_sequence)
                                          : 2048;
    draft.assume("sequence length " + std::to_string(length) + "; --sequence-length gives another");
  }
  draft.set("training.sequence_length", length);
}

}  // namespace tessera
