#include "app/cli/catalog_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hw/units/formatted.h"
#include "hw/units/lower_case.h"
#include "hw/units/text.h"
#include "sim/config/load.h"
#include "sim/report/definitions.h"
#include "sim/report/text/fitted_lines.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

constexpr std::pair<const char*, std::string_view> kTerms[] = {
    {"MFU", definitions::kMfu},
    {"HFU", definitions::kHfu},
    {"bubble", definitions::kBubbleFraction},
    {"exposed communication", definitions::kExposedCommunication},
    {"exposed copies", definitions::kExposedCopies},
    {"80 % interval", definitions::kInterval},
    {"host", definitions::kHost},
    {"peak memory", definitions::kPeakMemory},
    {"fits", definitions::kFits},
    {"zero-shot",
     "a prediction for a GPU of which nothing was measured: from kernels measured on other GPUs "
     "and from the figures of this one"},
    {"extrapolated",
     "kernels of which some input lies outside what the predictor was trained on; less certain"},
    {"contention",
     "what collectives beside the kernels, which share the GPU, add to the time of the kernels"},
    {"critical path",
     "chain of causes from the start of the step to its end: what released each op last; "
     "shortening "
     "anything else does not shorten the step"},
    {"data parallelism",
     "replicas of the model work on different sequences and add up their gradients: "
     "parallelism.data"},
    {"tensor parallelism",
     "every layer is split over GPUs, which exchange activations in each: parallelism.tensor"},
    {"pipeline parallelism",
     "stages of layers on different GPUs pass micro-batches on: parallelism.pipeline"},
    {"context parallelism",
     "a sequence is split over GPUs, which pass keys and values on: parallelism.context"},
    {"expert parallelism",
     "experts of a layer lie on different GPUs, and tokens travel to them: parallelism.expert"},
    {"ZeRO",
     "replicas share optimizer states (1), gradients too (2), weights too (3, or FSDP): "
     "training.data_parallel.sharding"},
    {"FSDP", "weights, gradients and optimizer states are shared by the replicas (ZeRO-3)"},
    {"1F1B",
     "pipeline schedule: one forward, one backward in turn, which bounds how many micro-batches "
     "keep activations"},
    {"recomputation",
     "activations are dropped and computed again in backward: less memory, more time; "
     "training.recompute"},
    {"roofline",
     "the fastest that arithmetic and memory bandwidth of the GPU allow a kernel, whichever is "
     "slower"},
    {"bus bandwidth",
     "of a collective, as nccl-tests count it: comparable to the rate of the links, whatever the "
     "number of GPUs"},
    {"oversubscription", "what could leave a part of the network over what the rest can take"},
    {"micro-batch", "sequences that go through the model at a time; their gradients add up"},
    {"global batch", "sequences of a step: micro-batch x data x micro-batches"},
    {"elasticity",
     "d ln(step time) / d ln(time that a resource takes): 1 where the step is as much faster as "
     "the resource, 0 where nothing waits for it"},
    {"approximate", "the scenario is not the job that it stands for; the line says in what"}};

std::string billions(std::int64_t count) {
  return formatted("%.3g", static_cast<double>(count) * 1e-9);
}

/// With as few digits as tell it; a dash for nothing.
std::string figure_cell(double value, double unit) {
  return value == 0 ? "-" : formatted("%.4g", value / unit);
}

std::string model_line(const ModelSpec& model, const std::string& id) {
  const ParameterCounts counts = parameter_counts(model);
  const bool sparse = counts.active > 0 && counts.active != counts.total;
  return formatted("%-26s %9s %8s %7lld %7lld %7lld %8lld\n", id.c_str(),
                   billions(counts.total).c_str(), sparse ? billions(counts.active).c_str() : "-",
                   static_cast<long long>(model.layers), static_cast<long long>(model.hidden),
                   static_cast<long long>(model.heads), static_cast<long long>(model.vocab));
}

std::string gpu_line(const GpuSpec& gpu) {
  return formatted(
      "%-24s %8s %9s %8s %8s %8s %8s\n", gpu.id.c_str(),
      figure_cell(static_cast<double>(gpu.memory.value()), 0x1p30).c_str(),
      figure_cell(gpu.memory_bandwidth.value(), 1e9).c_str(),
      figure_cell(gpu.fp32.value(), 1e12).c_str(), figure_cell(gpu.tf32.value(), 1e12).c_str(),
      figure_cell(gpu.bf16.value(), 1e12).c_str(), figure_cell(gpu.fp8.value(), 1e12).c_str());
}

std::string node_line(const NodeSpec& node, const std::string& id) {
  return formatted("%-32s %6d %6d %8s %9s  %s\n", id.c_str(), node.gpu_count, node.sockets,
                   figure_cell(static_cast<double>(node.host_memory.value()), 0x1p30).c_str(),
                   figure_cell(node.host_memory_bandwidth.value(), 1e9).c_str(),
                   node.gpu.id.c_str());
}

std::string cluster_line(const ClusterSpec& cluster, const std::string& id) {
  return formatted("%-32s %6d %6d  %s\n", id.c_str(), cluster.node_count * cluster.node.gpu_count,
                   cluster.node_count, cluster.node.gpu.id.c_str());
}

std::string head_of(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::gpus:
      return formatted("%-24s %8s %9s %8s %8s %8s %8s\n", "GPU", "GiB", "GB/s", "fp32", "tf32",
                       "bf16", "fp8 TF/s");
    case CatalogKind::models:
      return formatted("%-26s %9s %8s %7s %7s %7s %8s\n", "model", "10^9 par.", "active", "layers",
                       "hidden", "heads", "vocab");
    case CatalogKind::nodes:
      return formatted("%-32s %6s %6s %8s %9s  %s\n", "node", "GPUs", "CPUs", "host GiB",
                       "GB/s each", "of");
    case CatalogKind::clusters:
      return formatted("%-32s %6s %6s  %s\n", "cluster", "GPUs", "nodes", "of");
    default:
      return "";
  }
}

std::string line_of(CatalogKind kind, const std::string& id, const Catalog& catalog) {
  switch (kind) {
    case CatalogKind::gpus:
      return gpu_line(load_gpu(id, catalog));
    case CatalogKind::models:
      return model_line(load_model(id, catalog), id);
    case CatalogKind::nodes:
      return node_line(load_node(id, catalog), id);
    case CatalogKind::clusters:
      return cluster_line(load_cluster(id, catalog), id);
    default:
      return id + "\n";
  }
}

}  // namespace

std::string catalog_table(CatalogKind kind, const Catalog& catalog) {
  std::string table = head_of(kind);
  for (const std::string& id : catalog.ids(kind)) table += line_of(kind, id, catalog);
  return table;
}

std::string model_facts(const std::string& id, const Catalog& catalog) {
  const ModelSpec model = load_model(id, catalog);
  std::string text = id + ": " + to_text(parameter_counts(model)) + "\n";
  const auto add = [&](const char* label, std::int64_t value) {
    if (value > 0) text += formatted("  %-22s %lld\n", label, static_cast<long long>(value));
  };
  add("layers", model.layers);
  add("encoder layers", model.encoder_layers);
  add("hidden", model.hidden);
  add("heads", model.heads);
  if (model.kv_heads != model.heads) add("heads of keys, values", model.kv_heads);
  add("size of a head", model.head_dim);
  add("feed-forward", model.ffn);
  add("vocabulary", model.vocab);
  add("positions learned", model.max_positions);
  add("experts", model.experts);
  add("experts per token", model.experts_per_token);
  add("image size [pixels]", model.image_size);
  return text + "  in a scenario: model: " + id + "; its fields: tessera explain model\n";
}

std::optional<std::string> term_text(std::string_view term) {
  for (const auto& [name, meaning] : kTerms) {
    if (lower_case(name) != lower_case(term)) continue;
    return fitted(std::string(name) + "\n  meaning: " + std::string(meaning) + "\n");
  }
  return std::nullopt;
}

std::vector<std::string> term_names() {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : kTerms) names.emplace_back(name);
  return names;
}

std::string known_terms() {
  std::string list;
  for (const auto& [name, meaning] : kTerms) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

}  // namespace tessera
