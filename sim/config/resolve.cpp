#include "sim/config/resolve.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "configs/schema/hardware.pb.h"
#include "configs/schema/model.pb.h"
#include "configs/schema/scenario.pb.h"
#include "hw/units/lower_case.h"
#include "sim/config/derived_gpu.h"
#include "sim/config/fields/field_path.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/files/hugging_face_tree.h"
#include "sim/config/files/text_file.h"
#include "sim/config/merge.h"
#include "sim/config/shipped_file.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

/// Files that led to a section, outermost first, as messages show them.
using IncludeChain = std::vector<std::string>;

YamlNode broken(const Mark& mark) {
  YamlNode node;
  node.kind = YamlNode::Kind::broken;
  node.mark = mark;
  return node;
}

std::string arrows(const IncludeChain& chain) {
  std::string text;
  for (const std::string& file : chain) text += text.empty() ? file : " -> " + file;
  return text;
}

class Resolver {
 public:
  Resolver(const Catalog& catalog, YamlFileCache& files, ProblemList& problems)
      : catalog_(catalog), files_(files), problems_(problems) {}

  YamlNode resolve_section(YamlNode node, const pb::Descriptor& type, const std::string& path,
                           IncludeChain chain) {
    while (catalog_of(type) && node.find(kExtendsKey) != nullptr) {
      node = expand_extends(std::move(node), type, path, chain);
    }
    add_default_entries(node, type);
    for (YamlEntry& entry : node.entries) {
      const pb::FieldDescriptor* field = find_field(type, entry.key);
      if (field == nullptr || field->message_type() == nullptr) continue;
      const std::string field_path = joined_path(path, entry.key);
      if (field->is_repeated()) {
        resolve_items(entry.value, *field->message_type(), field_path);
      } else {
        entry.value = resolve_field(std::move(entry.value), *field->message_type(), field_path);
      }
    }
    return node;
  }

  /// What was read from files of Hugging Face.
  const std::vector<HuggingFaceModel>& models() const { return models_; }

 private:
  void resolve_items(YamlNode& list, const pb::Descriptor& type, const std::string& path) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      list.items[i] =
          resolve_field(std::move(list.items[i]), type, path + "[" + std::to_string(i) + "]");
    }
  }

  /// References to the catalog entries that stand where a section is not given.
  static void add_default_entries(YamlNode& node, const pb::Descriptor& type) {
    if (node.kind != YamlNode::Kind::mapping) return;
    for (int i = 0; i < type.field_count(); ++i) {
      const std::string& id = rules_of(*type.field(i)).default_entry();
      if (id.empty() || node.find(type.field(i)->name()) != nullptr) continue;
      YamlNode reference;
      reference.kind = YamlNode::Kind::scalar;
      reference.text = id;
      reference.mark = node.mark;
      node.entries.push_back({type.field(i)->name(), node.mark, std::move(reference)});
    }
  }

  /// The id that `text` means: entries are spelled with hyphens, and found with underscores too.
  std::string catalog_id(CatalogKind kind, std::string text) const {
    if (catalog_.has(kind, text)) return text;
    std::string hyphens = text;
    std::ranges::replace(hyphens, '_', '-');
    return catalog_.has(kind, hyphens) ? hyphens : text;
  }

  YamlNode resolve_field(YamlNode value, const pb::Descriptor& type, const std::string& path) {
    const bool refers = value.kind == YamlNode::Kind::scalar && catalog_of(type);
    return resolve_section(refers ? extending(std::move(value)) : std::move(value), type, path, {});
  }

  /// `node` over what its `extends` names.
  YamlNode expand_extends(YamlNode node, const pb::Descriptor& type, const std::string& path,
                          IncludeChain& chain) {
    const auto extends = std::ranges::find(node.entries, kExtendsKey, &YamlEntry::key);
    const YamlNode reference = std::move(extends->value);
    node.entries.erase(extends);
    YamlNode base = load(reference, type, path, chain);
    if (base.kind == YamlNode::Kind::broken) return base;
    use_schema_names(base, type);
    if (&type == schema::Gpu::descriptor()) check_own_figures(base, node, reference, path);
    return merge_sections(std::move(base), std::move(node), type);
  }

  /// A GPU of its own with other SMs than the one that it extends would multiply at that one's
  /// rate.
  void check_own_figures(const YamlNode& base, YamlNode changes, const YamlNode& reference,
                         const std::string& path) {
    use_schema_names(changes, *schema::Gpu::descriptor());
    const std::string taken = figures_of_another_gpu(base, changes);
    if (taken.empty()) return;
    const YamlEntry& sms = *changes.find("sm_count");
    const std::string own = changes.find("id")->value.text;
    problems_.add(sms.mark, path,
                  "sm_count = " + shown_value(sms.value.text) + ", unlike " + reference.text +
                      "'s: " + own + " would have its " + taken,
                  "state them from the data sheet of " + own + "; 0 where it has none");
  }

  YamlNode load(const YamlNode& reference, const pb::Descriptor& type, const std::string& path,
                IncludeChain& chain) {
    if (reference.kind != YamlNode::Kind::scalar) {
      return refuse(reference, path, std::string(kExtendsKey) + " is not a single value",
                    "name one id or file");
    }
    const std::string name = path.empty() ? lower_case(type.name()) : path;
    const std::string subject = name + " = " + shown_value(reference.text);
    const bool is_file = names_a_file(reference.text);
    const CatalogKind kind = *catalog_of(type);
    const std::string id = catalog_id(kind, reference.text);
    if (!is_file && !catalog_.has(kind, id)) {
      const auto ids = catalog_.ids(kind);
      return refuse(reference, path, subject + " is not in " + shown_path(catalog_.folder(kind)),
                    ids.empty() ? "name a file: its name has a slash or ends in .yaml"
                                : suggestion(reference.text, ids));
    }
    const fs::path file =
        is_file ? reference.mark.origin->directory / reference.text : catalog_.file(kind, id);
    chain.push_back(shown_path(file));
    if (std::ranges::count(chain, chain.back()) > 1) {
      return refuse(reference, path, subject + " includes itself: " + arrows(chain),
                    "break the cycle");
    }
    std::error_code failure;
    if (!fs::is_regular_file(file, failure)) {
      return refuse(reference, path, subject + ": there is no file " + shown_path(file),
                    "paths start at the folder of the file that names them");
    }
    return read(file, type, path, reference.mark);
  }

  YamlNode read(const fs::path& file, const pb::Descriptor& type, const std::string& path,
                const Mark& mark) {
    const bool is_model = &type == schema::Model::descriptor();
    try {
      if (is_model && file.extension() == ".json") return read_hugging_face(file);
      const YamlNode& tree = files_.read(file);
      if (tree.kind == YamlNode::Kind::mapping) return tree;
      return refuse(tree, path, "the file is no section", "write its fields as name: value");
    } catch (const InputError& error) {
      problems_.add(error, path);
      return broken(mark);
    }
  }

  YamlNode read_hugging_face(const fs::path& file) {
    HuggingFaceTree read = read_hugging_face_tree(file);
    models_.push_back(std::move(read.said));
    return std::move(read.tree);
  }

  YamlNode refuse(const YamlNode& node, const std::string& path, std::string what,
                  std::string hint) {
    problems_.add(node.mark, path, std::move(what), std::move(hint));
    return broken(node.mark);
  }

  const Catalog& catalog_;
  YamlFileCache& files_;
  ProblemList& problems_;
  std::vector<HuggingFaceModel> models_;
};

/// What a scenario's model lacks of its config.json, among the scenario's approximations.
void add_approximations(YamlNode& scenario, const HuggingFaceModel& model) {
  if (model.approximations.empty()) return;
  auto found = std::ranges::find(scenario.entries, "approximations", &YamlEntry::key);
  if (found == scenario.entries.end()) {
    YamlNode list;
    list.kind = YamlNode::Kind::sequence;
    list.mark = scenario.mark;
    found = scenario.entries.insert(found, {"approximations", scenario.mark, std::move(list)});
  }
  for (const std::string& text : model.approximations) {
    YamlNode item;
    item.kind = YamlNode::Kind::scalar;
    item.text = text;
    item.quoted = true;
    item.mark = scenario.mark;
    found->value.items.push_back(std::move(item));
  }
}

}  // namespace

YamlNode resolve(YamlNode root, const pb::Descriptor& type, const Catalog& catalog,
                 ProblemList& problems) {
  YamlFileCache files;
  return resolve(std::move(root), type, catalog, files, problems);
}

YamlNode resolve(YamlNode root, const pb::Descriptor& type, const Catalog& catalog,
                 YamlFileCache& files, ProblemList& problems) {
  use_schema_names(root, type);
  IncludeChain chain = {root.mark.origin->name};
  Resolver resolver(catalog, files, problems);
  root = resolver.resolve_section(std::move(root), type, "", std::move(chain));
  if (&type != schema::Scenario::descriptor()) return root;
  for (const HuggingFaceModel& model : resolver.models()) add_approximations(root, model);
  return root;
}

YamlNode resolve_reference(const std::string& id_or_file, const pb::Descriptor& type,
                           const Catalog& catalog, ProblemList& problems) {
  YamlNode reference;
  reference.kind = YamlNode::Kind::scalar;
  reference.text = id_or_file;
  reference.mark.origin = std::make_shared<Origin>(Origin{"", "", false});
  YamlFileCache files;
  return Resolver(catalog, files, problems)
      .resolve_section(extending(std::move(reference)), type, "", {});
}

}  // namespace tessera
