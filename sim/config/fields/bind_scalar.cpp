#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include <google/protobuf/message.h>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/fields/bind.h"
#include "sim/config/fields/schema_rules.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

/// Sets singular and repeated fields alike.
class FieldSetter {
 public:
  FieldSetter(pb::Message& message, const Field& field)
      : message_(message), reflection_(*message.GetReflection()), field_(field) {}

  void set(bool value) const { reflection_.SetBool(&message_, &field_, value); }
  void set(double value) const { reflection_.SetDouble(&message_, &field_, value); }
  void set(const pb::EnumValueDescriptor& value) const {
    reflection_.SetEnum(&message_, &field_, &value);
  }
  void set(const std::string& value) const {
    if (field_.is_repeated()) {
      reflection_.AddString(&message_, &field_, value);
    } else {
      reflection_.SetString(&message_, &field_, value);
    }
  }
  void set(std::int64_t value) const {
    const auto narrow = static_cast<std::int32_t>(value);
    if (field_.is_repeated()) {
      reflection_.AddInt32(&message_, &field_, narrow);
    } else if (field_.cpp_type() == Field::CPPTYPE_INT32) {
      reflection_.SetInt32(&message_, &field_, narrow);
    } else {
      reflection_.SetInt64(&message_, &field_, value);
    }
  }

 private:
  pb::Message& message_;
  const pb::Reflection& reflection_;
  const Field& field_;
};

template <class Number>
std::errc parse_number(const std::string& text, Number& value) {
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(begin, end, value);
  if (result.ec == std::errc() && result.ptr != end) return std::errc::invalid_argument;
  return result.ec;
}

ValueFault fault_of_range(const Field& field) {
  return {"is out of range", "use " + range_text(field)};
}

std::string number_hint(const Field& field, const std::string& kind) {
  const std::string range = range_text(field);
  return "write " + kind + (range.empty() ? "" : ", " + range);
}

/// A value in quotes is text in YAML, whatever it spells.
bool is_quoted_number(const YamlNode& scalar) {
  double ignored = 0;
  return scalar.quoted && parse_number(scalar.text, ignored) == std::errc();
}

/// "8k" of tokens is 8192, as everyone means it; of other things it may be 8000.
bool counts_in_1024(const Field& field) {
  return field.name() == "sequence_length";
}

/// The number before a "k", as in "8k"; empty where there is none.
std::optional<std::int64_t> thousands(const YamlNode& scalar) {
  const std::string& text = scalar.text;
  std::int64_t value = 0;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (scalar.quoted || text.size() < 2 || (text.back() != 'k' && text.back() != 'K')) return {};
  if (parse_number(text.substr(0, text.size() - 1), value) != std::errc()) return {};
  return std::clamp<std::int64_t>(value, -kMost, kMost);
}

ValueFault bind_integer(const YamlNode& scalar, const Field& field, const FieldSetter& setter) {
  std::int64_t value = 0;
  std::errc error = parse_number(scalar.text, value);
  if (const auto count = thousands(scalar)) {
    if (!counts_in_1024(field))
      return {"may be " + std::to_string(*count * 1000) + " or " + std::to_string(*count * 1024),
              "write the number out"};
    value = *count * 1024;
    error = std::errc();
  }
  if (error == std::errc::result_out_of_range) return fault_of_range(field);
  if (is_quoted_number(scalar)) return {"is text", "remove the quotes"};
  if (error != std::errc()) {
    return {"is not a whole number", number_hint(field, "a whole number")};
  }
  constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  const bool narrow = field.cpp_type() == Field::CPPTYPE_INT32;
  if (narrow && value > kMaxInt32) return fault_of_range(field);
  if (!in_range(static_cast<double>(value), field)) return fault_of_range(field);
  setter.set(value);
  return {};
}

ValueFault bind_real(const YamlNode& scalar, const Field& field, const FieldSetter& setter) {
  double value = 0;
  const std::errc error = parse_number(scalar.text, value);
  if (error == std::errc::result_out_of_range) return fault_of_range(field);
  if (is_quoted_number(scalar)) return {"is text", "remove the quotes"};
  if (error != std::errc() || !std::isfinite(value)) {
    return {"is not a finite number", number_hint(field, "a number")};
  }
  if (!in_range(value, field)) return fault_of_range(field);
  setter.set(value);
  return {};
}

ValueFault bind_quantity(const YamlNode& scalar, const Field& field, const FieldSetter& setter,
                         Dimension dimension) {
  const bool whole = field.cpp_type() == Field::CPPTYPE_INT64;
  try {
    const Bytes bytes = whole ? parse_bytes(scalar.text) : Bytes();
    const double value =
        whole ? static_cast<double>(bytes.value()) : parse_quantity(scalar.text, dimension);
    if (!in_range(value, field)) return fault_of_range(field);
    whole ? setter.set(bytes.value()) : setter.set(value);
    return {};
  } catch (const InputError& error) {
    const Problem& problem = error.problems().front();
    // The path and the value are said before; the parser's text begins with the quoted value.
    const std::string quoted = '"' + scalar.text + "\" ";
    const bool repeats = problem.what.starts_with(quoted);
    return {repeats ? problem.what.substr(quoted.size()) : problem.what, problem.hint};
  }
}

ValueFault bind_enum(const YamlNode& scalar, const Field& field, const FieldSetter& setter) {
  const pb::EnumValueDescriptor* value = find_value(*field.enum_type(), scalar.text);
  if (value == nullptr) {
    return {"is not known", value_suggestion(scalar.text, *field.enum_type())};
  }
  setter.set(*value);
  return {};
}

ValueFault bind_bool(const YamlNode& scalar, const FieldSetter& setter) {
  const bool known = scalar.text == "true" || scalar.text == "false";
  if (!known || scalar.quoted) return {"is not true or false", "write true or false"};
  setter.set(scalar.text == "true");
  return {};
}

ValueFault bind_text(const YamlNode& scalar, const Field& field, const FieldSetter& setter) {
  if (scalar.text.empty()) return {"is empty", "write at least one character"};
  const bool title = field.name() == "name" || field.name() == "id";
  if (title && scalar.text.find_first_of("\n\t") != std::string::npos)
    return {"holds a line break or a tab", "write it on one line"};
  setter.set(scalar.text);
  return {};
}

}  // namespace

ValueFault bind_scalar(const YamlNode& scalar, const Field& field, pb::Message& message) {
  const FieldSetter setter(message, field);
  if (const auto dimension = dimension_of(field)) {
    return bind_quantity(scalar, field, setter, *dimension);
  }
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return bind_bool(scalar, setter);
    case Field::CPPTYPE_ENUM:
      return bind_enum(scalar, field, setter);
    case Field::CPPTYPE_STRING:
      return bind_text(scalar, field, setter);
    case Field::CPPTYPE_DOUBLE:
      return bind_real(scalar, field, setter);
    default:
      return bind_integer(scalar, field, setter);
  }
}

}  // namespace tessera
