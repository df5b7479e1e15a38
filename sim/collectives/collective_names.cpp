#include "sim/collectives/collective_names.h"

#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace tessera {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

constexpr std::array<std::pair<Kind, std::string_view>, 6> kKinds = {
    {{Kind::all_reduce, "all_reduce"},
     {Kind::reduce_scatter, "reduce_scatter"},
     {Kind::all_gather, "all_gather"},
     {Kind::broadcast, "broadcast"},
     {Kind::all_to_all, "alltoall"},
     {Kind::send_recv, "sendrecv"}}};

constexpr std::array<std::pair<Algorithm, std::string_view>, 9> kAlgorithms = {
    {{Algorithm::ring, "ring"},
     {Algorithm::tree, "tree"},
     {Algorithm::nvls, "nvls"},
     {Algorithm::nvls_tree, "nvls_tree"},
     {Algorithm::collnet_direct, "collnet_direct"},
     {Algorithm::collnet_chain, "collnet_chain"},
     {Algorithm::pat, "pat"},
     {Algorithm::pairwise, "pairwise"},
     {Algorithm::hierarchical, "hierarchical"}}};

constexpr std::array<std::pair<Protocol, std::string_view>, 3> kProtocolNames = {
    {{Protocol::ll, "ll"}, {Protocol::ll128, "ll128"}, {Protocol::simple, "simple"}}};

/// Letters and digits in lower case: "AllReduce" and "all_reduce" are one name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "";
}

template <class Table>
auto value_in(const Table& table, std::string_view name)
    -> std::optional<typename Table::value_type::first_type> {
  for (const auto& [value, known] : table) {
    if (plain(known) == plain(name)) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  return name_in(kKinds, kind);
}

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return name_in(kAlgorithms, algorithm);
}

std::string_view name_of(CollectiveProtocol protocol) {
  return name_in(kProtocolNames, protocol);
}

std::optional<CollectiveKind> collective_kind_of(std::string_view name) {
  return value_in(kKinds, name);
}

std::optional<CollectiveAlgorithm> collective_algorithm_of(std::string_view name) {
  return value_in(kAlgorithms, name);
}

std::optional<CollectiveProtocol> collective_protocol_of(std::string_view name) {
  return value_in(kProtocolNames, name);
}

}  // namespace tessera
