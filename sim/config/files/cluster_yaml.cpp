#include "sim/config/files/cluster_yaml.h"

#include "configs/schema/scenario.pb.h"
#include "sim/config/fields/convert.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/files/yaml_text.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

bool has_same(const YamlNode& tree, const YamlEntry& entry) {
  const YamlEntry* other = tree.find(entry.key);
  return other != nullptr && other->value.kind == YamlNode::Kind::scalar &&
         other->value.text == entry.value.text;
}

/// The catalog's entry by its id alone, else `extends: id` with the fields that differ.
YamlNode gpu_reference(const std::string& id, const GpuSpec& gpu, const Catalog& catalog) {
  const YamlNode base = to_tree(to_message(load_gpu(id, catalog)), {});
  YamlNode section;
  section.kind = YamlNode::Kind::mapping;
  section.entries.push_back({std::string(kExtendsKey), {}, scalar(id)});
  for (const YamlEntry& entry : to_tree(to_message(gpu), {}).entries) {
    const bool is_list = entry.value.kind == YamlNode::Kind::sequence;
    if (!is_list && !has_same(base, entry)) section.entries.push_back(entry);
  }
  return section.entries.size() == 1 ? scalar(id) : section;
}

}  // namespace

std::string cluster_yaml(const ClusterSpec& cluster, const std::string& gpu,
                         const Catalog& catalog) {
  YamlNode tree = to_tree(to_message(cluster), {});
  for (YamlEntry& entry : tree.entries) {
    if (entry.key != "node") continue;
    for (YamlEntry& field : entry.value.entries) {
      if (field.key == "gpu") field.value = gpu_reference(gpu, cluster.node.gpu, catalog);
    }
  }
  return to_yaml(tree);
}

}  // namespace tessera
