#include "app/cli/catalog_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/config/load.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

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

}  // namespace tessera
