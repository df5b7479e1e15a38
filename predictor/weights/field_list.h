#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "predictor/weights/training_data.h"

namespace tessera {

// Members of a value and fields of its message that have the same names are listed once, in a
// function `fields(value, message, each)` that serves both ways: `each` is one of these.

/// Members take what the fields hold.
struct ReadFields {
  void operator()(auto& member, auto&& field, auto&&) const {
    member = std::forward<decltype(field)>(field);
  }
};

/// Fields take what the members hold.
struct WriteFields {
  void operator()(const auto& member, auto&&, auto&& set) const { set(member); }
};

/// One line of such a list. C++20 cannot ask a type for its members.
#define TESSERA_FIELD(name) \
  each(value.name, message.name(), [&](const auto& given) { message.set_##name(given); })

/// Of a parameter of `fields`: `T`, or `const T` where it is written.
template <class T, class Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

void fields(Is<TrainingData> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(file);
  TESSERA_FIELD(fnv1a);
  TESSERA_FIELD(rows);
}

template <class Value, class Message>
void read_fields(const Message& message, Value& value) {
  fields(value, message, ReadFields());
}

template <class Value, class Message>
void write_fields(const Value& value, Message& message) {
  fields(value, message, WriteFields());
}

}  // namespace tessera
