#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/process/forked_call.h"

/// How values cross from a forked process to the one that waits: as CBOR (RFC 8949), which keeps
/// every bit of a number. A type crosses when nlohmann's library can turn it into JSON and back:
/// NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE names its members.
template <class Tag, class Rep>
struct nlohmann::adl_serializer<tessera::Quantity<Tag, Rep>> {
  template <class Json>
  static void to_json(Json& json, const tessera::Quantity<Tag, Rep>& quantity) {
    json = quantity.value();
  }
  template <class Json>
  static void from_json(const Json& json, tessera::Quantity<Tag, Rep>& quantity) {
    quantity = tessera::Quantity<Tag, Rep>(json.template get<Rep>());
  }
};

template <class Value>
struct nlohmann::adl_serializer<std::optional<Value>> {
  template <class Json>
  static void to_json(Json& json, const std::optional<Value>& value) {
    if (value)
      json = *value;
    else
      json = nullptr;
  }
  template <class Json>
  static void from_json(const Json& json, std::optional<Value>& value) {
    if (json.is_null())
      value.reset();
    else
      value = json.template get<Value>();
  }
};

namespace tessera {

/// JSON whose keys have an order keeps it.
template <class Answer>
using AnswerJson = std::conditional_t<std::is_same_v<Answer, nlohmann::ordered_json>,
                                      nlohmann::ordered_json, nlohmann::json>;

std::string cbor_of(const nlohmann::json& json);
std::string cbor_of(const nlohmann::ordered_json& json);
/// What cbor_of() made of `json`, which is overwritten.
void read_cbor(const std::string& bytes, nlohmann::json& json);
void read_cbor(const std::string& bytes, nlohmann::ordered_json& json);

template <class Answer>
std::string packed(const Answer& answer) {
  return cbor_of(AnswerJson<Answer>(answer));
}

/// What packed() made of an `Answer`.
template <class Answer>
Answer unpacked(const std::string& bytes) {
  AnswerJson<Answer> json;
  read_cbor(bytes, json);
  return json.template get<Answer>();
}

/// Runs `call` in a fork of this process and returns its answer; throws as run_forked() does.
template <class Call>
auto forked(const Call& call) {
  using Answer = std::invoke_result_t<const Call&>;
  return unpacked<Answer>(run_forked([&] { return packed(call()); }));
}

/// What became of one call: its answer, or what() of the error that it ended with.
template <class Answer>
struct ForkedAnswer {
  std::optional<Answer> answer;
  std::string error;  ///< empty: it succeeded

  /// The answer; throws ForkedCallError where there is none.
  const Answer& value() const {
    if (!answer) throw ForkedCallError(error);
    return *answer;
  }
};

/// Runs all `calls`, at most `jobs` (>= 1) at a time, and returns what became of them in their
/// order; `on_ended(n)` after each, with how many have ended. `goes_on`: as of ForkedPool.
template <class Answer>
std::vector<ForkedAnswer<Answer>> forked_each(
    const std::vector<std::function<Answer()>>& calls, int jobs,
    const std::function<void(std::size_t)>& on_ended = [](std::size_t) {},
    const std::function<bool()>& goes_on = nullptr) {
  std::vector<std::function<std::string()>> tasks;
  for (const auto& call : calls) tasks.push_back([&call] { return packed(call()); });
  std::vector<ForkedAnswer<Answer>> answers;
  for (ForkedOutcome& outcome : run_forked_each(tasks, jobs, on_ended, goes_on)) {
    ForkedAnswer<Answer> answer{.answer = {}, .error = std::move(outcome.error)};
    if (answer.error.empty()) answer.answer = unpacked<Answer>(outcome.result);
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace tessera
