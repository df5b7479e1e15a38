#pragma once

#include <cassert>
#include <string>
#include <type_traits>
#include <vector>

#include "configs/schema/mirror.h"
#include "sim/config/fields/convert.h"
#include "workloads/program/rank_order.h"

namespace tessera {

template <class T>
concept EnumType = std::is_enum_v<T>;

inline const google::protobuf::FieldDescriptor& field_called(
    const google::protobuf::Message& message, const char* name) {
  const google::protobuf::FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  assert(field != nullptr);
  return *field;
}

/// Copies the fields of a message into the members of the same names.
class MessageReader {
 public:
  explicit MessageReader(const google::protobuf::Message& message)
      : message_(message), reflection_(*message.GetReflection()) {}

  void operator()(const char* name, auto& member) const {
    read(field_called(message_, name), member);
  }

 private:
  using Field = google::protobuf::FieldDescriptor;
  void read(const Field& field, bool& member) const {
    member = reflection_.GetBool(message_, &field);
  }
  void read(const Field& field, int& member) const {
    member = reflection_.GetInt32(message_, &field);
  }
  void read(const Field& field, std::int64_t& member) const {
    member = reflection_.GetInt64(message_, &field);
  }
  void read(const Field& field, double& member) const {
    member = reflection_.GetDouble(message_, &field);
  }
  /// Of an enumeration: the value's name, empty for the one that stands for nothing.
  void read(const Field& field, std::string& member) const {
    if (field.enum_type() == nullptr) {
      member = reflection_.GetString(message_, &field);
      return;
    }
    const auto* value = reflection_.GetEnum(message_, &field);
    if (value->number() != 0) member = value->name();
  }
  void read(const Field& field, EnumType auto& member) const {
    using Member = std::remove_reference_t<decltype(member)>;
    member = static_cast<Member>(reflection_.GetEnumValue(message_, &field));
  }
  template <class Tag, class Rep>
  void read(const Field& field, Quantity<Tag, Rep>& member) const {
    Rep value{};
    read(field, value);
    member = Quantity<Tag, Rep>(value);
  }
  void read(const Field& field, std::vector<int>& member) const {
    const int count = reflection_.FieldSize(message_, &field);
    for (int i = 0; i < count; ++i)
      member.push_back(reflection_.GetRepeatedInt32(message_, &field, i));
  }
  void read(const Field& field, RankOrder& member) const {
    member = parse_rank_order(reflection_.GetString(message_, &field)).value_or(kDefaultRankOrder);
  }
  void read(const Field& field, std::vector<std::string>& member) const {
    const int count = reflection_.FieldSize(message_, &field);
    for (int i = 0; i < count; ++i) {
      member.push_back(reflection_.GetRepeatedString(message_, &field, i));
    }
  }
  template <class T>
  void read(const Field& field, std::vector<T>& member) const {
    const int count = reflection_.FieldSize(message_, &field);
    for (int i = 0; i < count; ++i) {
      mirror(member.emplace_back(),
             MessageReader(reflection_.GetRepeatedMessage(message_, &field, i)));
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void read(const Field& field, T& member) const {
    mirror(member, MessageReader(reflection_.GetMessage(message_, &field)));
  }

  const google::protobuf::Message& message_;
  const google::protobuf::Reflection& reflection_;
};

/// Copies the fields that a message has; members of the others stay as they are.
class GivenReader {
 public:
  explicit GivenReader(const google::protobuf::Message& message) : message_(message) {}

  void operator()(const char* name, auto& member) const {
    const google::protobuf::FieldDescriptor& field = field_called(message_, name);
    if (message_.GetReflection()->HasField(message_, &field)) MessageReader{message_}(name, member);
  }

 private:
  const google::protobuf::Message& message_;
};

/// Copies members into the fields of the same names.
class MessageWriter {
 public:
  explicit MessageWriter(google::protobuf::Message& message)
      : message_(message), reflection_(*message.GetReflection()) {}

  void operator()(const char* name, const auto& member) const {
    write(field_called(message_, name), member);
  }

 private:
  using Field = google::protobuf::FieldDescriptor;
  void write(const Field& field, bool member) const {
    reflection_.SetBool(&message_, &field, member);
  }
  void write(const Field& field, int member) const {
    reflection_.SetInt32(&message_, &field, member);
  }
  void write(const Field& field, std::int64_t member) const {
    reflection_.SetInt64(&message_, &field, member);
  }
  void write(const Field& field, double member) const {
    reflection_.SetDouble(&message_, &field, member);
  }
  void write(const Field& field, const std::string& member) const {
    if (field.enum_type() == nullptr) return reflection_.SetString(&message_, &field, member);
    const auto* value = field.enum_type()->FindValueByName(member);
    if (value != nullptr) reflection_.SetEnum(&message_, &field, value);
  }
  void write(const Field& field, EnumType auto member) const {
    reflection_.SetEnumValue(&message_, &field, static_cast<int>(member));
  }
  template <class Tag, class Rep>
  void write(const Field& field, Quantity<Tag, Rep> member) const {
    write(field, member.value());
  }
  void write(const Field& field, const std::vector<int>& member) const {
    for (const int item : member) reflection_.AddInt32(&message_, &field, item);
  }
  void write(const Field& field, const RankOrder& member) const {
    reflection_.SetString(&message_, &field, text_of(member));
  }
  void write(const Field& field, const std::vector<std::string>& member) const {
    for (const std::string& text : member) reflection_.AddString(&message_, &field, text);
  }
  template <class T>
  void write(const Field& field, const std::vector<T>& member) const {
    for (const T& item : member)
      mirror(item, MessageWriter(*reflection_.AddMessage(&message_, &field)));
  }
  template <class T>
  requires std::is_class_v<T>
  void write(const Field& field, const T& member) const {
    mirror(member, MessageWriter(*reflection_.MutableMessage(&message_, &field)));
  }

  google::protobuf::Message& message_;
  const google::protobuf::Reflection& reflection_;
};

}  // namespace tessera
