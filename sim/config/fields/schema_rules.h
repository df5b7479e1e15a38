#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/options.pb.h"
#include "hw/units/text.h"
#include "sim/config/catalog.h"

namespace tessera {

/// Key that every section with a catalog understands besides its fields: the id or file to start
/// from.
inline constexpr std::string_view kExtendsKey = "extends";

const schema::FieldRules& rules_of(const google::protobuf::FieldDescriptor& field);
const schema::SectionRules& rules_of(const google::protobuf::Descriptor& section);
const schema::ValueRules& rules_of(const google::protobuf::EnumValueDescriptor& value);

/// The catalog whose entries may stand for such a section, if there is one.
std::optional<CatalogKind> catalog_of(const google::protobuf::Descriptor& section);

/// Field by its name or an alias of it; null if there is none.
const google::protobuf::FieldDescriptor* find_field(const google::protobuf::Descriptor& section,
                                                    std::string_view key);
/// Value by its name or an alias of it; null if there is none.
const google::protobuf::EnumValueDescriptor* find_value(
    const google::protobuf::EnumDescriptor& type, std::string_view word);

/// Names in the order of the schema, aliases left out.
std::vector<std::string> field_names(const google::protobuf::Descriptor& section);
std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type);

/// "did you mean X?", X a name or an alias, else the list of names.
std::string field_suggestion(std::string_view key, const google::protobuf::Descriptor& section);
std::string value_suggestion(std::string_view word, const google::protobuf::EnumDescriptor& type);

/// The field that an unknown `key` most likely means; null if none is near.
const google::protobuf::FieldDescriptor* nearest_field(const google::protobuf::Descriptor& section,
                                                       std::string_view key);

/// Dimension of a field that is written with a unit; none for plain numbers.
std::optional<Dimension> dimension_of(const google::protobuf::FieldDescriptor& field);

/// Whether the field holds a section (one, not a list).
bool is_section(const google::protobuf::FieldDescriptor& field);

/// A number of the schema as people write it: "0.9", "1000000", with its unit "0 B".
std::string number_text(double value, const google::protobuf::FieldDescriptor& field);

/// "1 or more", "above 0 and at most 1"; empty without bounds.
std::string range_text(const google::protobuf::FieldDescriptor& field);

/// Whether `value` lies in the range of the field.
bool in_range(double value, const google::protobuf::FieldDescriptor& field);

}  // namespace tessera
