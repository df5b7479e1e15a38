#include "sim/config/merge.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <google/protobuf/descriptor.h>

#include "sim/config/fields/schema_rules.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;

/// Whether an id or a file may stand for the section that `field` holds.
bool may_be_reference(const pb::FieldDescriptor& field) {
  return is_section(field) && catalog_of(*field.message_type()).has_value();
}

/// The value of a field that both sides give.
YamlNode merge_values(YamlNode base, YamlNode change, const pb::FieldDescriptor& field) {
  const bool change_is_section = is_section(field) && change.kind == YamlNode::Kind::mapping;
  const bool starts_anew = change.find(kExtendsKey) != nullptr;
  if (!change_is_section || starts_anew) return change;
  if (base.kind == YamlNode::Kind::mapping) {
    return merge_sections(std::move(base), std::move(change), *field.message_type());
  }
  if (base.kind != YamlNode::Kind::scalar || !may_be_reference(field)) return change;
  YamlNode merged = extending(std::move(base));
  merged.mark = change.mark;
  std::ranges::move(change.entries, std::back_inserter(merged.entries));
  return merged;
}

YamlEntry* find_entry(YamlNode& section, std::string_view key) {
  const auto found = std::ranges::find(section.entries, key, &YamlEntry::key);
  return found == section.entries.end() ? nullptr : &*found;
}

/// The figures of the hardware that `changes` gives are no more those of the base's sources.
void forget_sources(const YamlNode& changes, YamlNode& base) {
  YamlEntry* const sources = find_entry(base, "sources");
  if (sources == nullptr || changes.find("sources") != nullptr) return;
  for (YamlNode& source : sources->value.items) {
    YamlEntry* const figures = find_entry(source, "figures");
    if (figures == nullptr) continue;
    std::erase_if(figures->value.items,
                  [&](const YamlNode& figure) { return changes.find(figure.text) != nullptr; });
  }
  std::erase_if(sources->value.items, [](YamlNode& source) {
    const YamlEntry* const figures = find_entry(source, "figures");
    return figures != nullptr && figures->value.items.empty();
  });
}

}  // namespace

void use_schema_names(YamlNode& section, const pb::Descriptor& type) {
  for (YamlEntry& entry : section.entries) {
    const pb::FieldDescriptor* field = find_field(type, entry.key);
    if (field == nullptr) continue;
    entry.key = field->name();
    if (is_section(*field)) use_schema_names(entry.value, *field->message_type());
  }
}

YamlNode merge_sections(YamlNode base, YamlNode changes, const pb::Descriptor& type) {
  if (!changes.entries.empty()) base.mark = changes.mark;
  forget_sources(changes, base);
  std::set<std::string> seen;
  for (YamlEntry& change : changes.entries) {
    const pb::FieldDescriptor* field = find_field(type, change.key);
    YamlEntry* const old = find_entry(base, change.key);
    // A key that the section itself gives twice stays twice, for the binder to report.
    const bool repeated = !seen.insert(change.key).second;
    if (old == nullptr || field == nullptr || repeated) {
      base.entries.push_back(std::move(change));
      continue;
    }
    old->value = merge_values(std::move(old->value), std::move(change.value), *field);
    old->mark = change.mark;
  }
  return base;
}

YamlNode extending(YamlNode reference) {
  YamlNode section;
  section.kind = YamlNode::Kind::mapping;
  section.mark = reference.mark;
  const Mark mark = reference.mark;
  section.entries.push_back({std::string(kExtendsKey), mark, std::move(reference)});
  return section;
}

}  // namespace tessera
