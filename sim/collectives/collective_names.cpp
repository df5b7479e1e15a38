#include "sim/collectives/collective_names.h"

#include <array>
#include <cctype>
#include <span>
#include <string>

namespace tessera {
namespace {

/// As nccl-tests call them.
constexpr auto kKinds = std::to_array<std::string_view>(
    {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "alltoall", "sendrecv"});
constexpr auto kAlgorithmNames = std::to_array<std::string_view>({
#include "configs/schema/words/collective_algorithm_names.inc"
});
constexpr auto kProtocolNames = std::to_array<std::string_view>({
#include "configs/schema/words/collective_protocol_names.inc"
});

/// Letters and digits in lower case: "AllReduce" and "all_reduce" are one name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

/// The value at the place of `name` among `words`.
template <class Value>
std::optional<Value> value_called(std::string_view name, std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (plain(words[i]) == plain(name)) return static_cast<Value>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(CollectiveProtocol protocol) {
  return kProtocolNames[static_cast<std::size_t>(protocol)];
}

std::optional<CollectiveKind> collective_kind_of(std::string_view name) {
  return value_called<CollectiveKind>(name, kKinds);
}

std::optional<CollectiveAlgorithm> collective_algorithm_of(std::string_view name) {
  return value_called<CollectiveAlgorithm>(name, kAlgorithmNames);
}

std::optional<CollectiveProtocol> collective_protocol_of(std::string_view name) {
  return value_called<CollectiveProtocol>(name, kProtocolNames);
}

}  // namespace tessera
