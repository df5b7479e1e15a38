#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "sim/config/fields/field_path.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/files/text_file.h"
#include "sim/config/merge.h"
#include "sim/config/resolve.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;

/// One "path=value".
struct Override {
  std::vector<std::string> path;
  YamlNode value;
  Mark mark;
};

[[noreturn]] void refuse(const Mark& mark, std::string what, std::string hint) {
  throw InputError(Problem{mark.text(), std::move(what), std::move(hint)});
}

Override parse_override(const std::string& setting) {
  const auto origin = std::make_shared<Origin>(Origin{"--set " + shown_value(setting), "", false});
  const Mark mark{origin};
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos) {
    refuse(mark, "has no '='", "write path=value, such as parallelism.tensor=4");
  }
  const std::vector<std::string> path = split_path(setting.substr(0, equals));
  if (std::ranges::count(path, "") > 0 || static_cast<int>(path.size()) > kMaxNesting) {
    refuse(mark, "names no field", "write path=value, such as parallelism.tensor=4");
  }
  const std::string value = setting.substr(equals + 1);
  if (value.empty()) refuse(mark, "has no value", "write path=value");
  check_plain_text(value, origin->name);
  return {path, parse_yaml(value, origin), mark};
}

YamlEntry& entry_of(YamlNode& section, const std::string& key, const Mark& mark) {
  const auto found = std::ranges::find(section.entries, key, &YamlEntry::key);
  if (found != section.entries.end()) return *found;
  YamlNode value;
  value.mark = mark;
  return section.entries.emplace_back(YamlEntry{key, mark, std::move(value)});
}

/// Makes `value` a section that fields can be set in; an id or file becomes the base that it
/// extends.
void open_section(YamlNode& value, const pb::FieldDescriptor* field, const Mark& mark) {
  if (value.kind == YamlNode::Kind::mapping) return;
  if (value.kind == YamlNode::Kind::sequence) {
    refuse(mark, "leads into a list", "set the whole list: path=[a, b]");
  }
  const bool refers = field != nullptr && is_section(*field) && catalog_of(*field->message_type());
  if (refers && value.kind == YamlNode::Kind::scalar) {
    value = extending(std::move(value));
    return;
  }
  value = YamlNode();
  value.kind = YamlNode::Kind::mapping;
  value.mark = mark;
}

void apply(YamlNode& root, Override setting, const pb::Descriptor& root_type) {
  YamlNode* section = &root;
  const pb::Descriptor* type = &root_type;
  for (std::size_t i = 0;; ++i) {
    const pb::FieldDescriptor* field =
        type == nullptr ? nullptr : find_field(*type, setting.path[i]);
    const std::string& key = field == nullptr ? setting.path[i] : field->name();
    YamlEntry& entry = entry_of(*section, key, setting.mark);
    if (i + 1 == setting.path.size()) {
      entry.value = std::move(setting.value);
      entry.mark = setting.mark;
      return;
    }
    open_section(entry.value, field, setting.mark);
    section = &entry.value;
    type = field != nullptr && is_section(*field) ? field->message_type() : nullptr;
  }
}

}  // namespace

void apply_settings(YamlNode& root, std::span<const FieldSetting> settings,
                    const pb::Descriptor& type, ProblemList& problems) {
  use_schema_names(root, type);
  if (root.kind != YamlNode::Kind::mapping) return;
  for (const FieldSetting& setting : settings) {
    try {
      apply(root, {split_path(setting.path), setting.value, setting.value.mark}, type);
    } catch (const InputError& error) {
      problems.add(error, setting.path);
    }
  }
}

void apply_overrides(YamlNode& root, std::span<const std::string> overrides,
                     const pb::Descriptor& type, ProblemList& problems) {
  use_schema_names(root, type);
  if (root.kind != YamlNode::Kind::mapping) return;
  for (const std::string& setting : overrides) {
    try {
      apply(root, parse_override(setting), type);
    } catch (const InputError& error) {
      problems.add(error, setting.substr(0, setting.find('=')));
    }
  }
}

}  // namespace tessera
