#include "sim/formats/chakra_reader.h"

#include <algorithm>
#include <bit>
#include <ios>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/formats/input_file.h"
#include "sim/formats/wire_reader.h"

namespace tessera {
namespace {

using namespace chakra;

/// Name and value of an attribute; lists and bytes, which nothing here needs, have neither.
struct Attribute {
  std::string_view name;
  std::string_view text;
  std::int64_t number = 0;
  bool is_number = false;
};

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1U) ^ -static_cast<std::int64_t>(value & 1U);
}

std::int64_t whole(double value) {
  constexpr double kLargest = 9e18;
  if (!(value > -kLargest && value < kLargest)) return 0;
  return static_cast<std::int64_t>(value);
}

std::int64_t number_of(const WireField& field) {
  using namespace attribute_field;
  switch (field.number) {
    case kDouble:
      return whole(std::bit_cast<double>(field.value));
    case kFloat:
      return whole(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    case kSint32:
    case kSint64:
      return zigzag(field.value);
    case kSfixed32:
      return static_cast<std::int32_t>(field.value);
    default:
      return static_cast<std::int64_t>(field.value);
  }
}

Attribute attribute_of(std::string_view bytes) {
  Attribute attribute;
  for (WireReader reader(bytes); !reader.at_end();) {
    const WireField field = reader.field();
    if (field.is(attribute_field::kName, true)) {
      attribute.name = field.bytes;
    } else if (field.is(attribute_field::kString, true)) {
      attribute.text = field.bytes;
    } else if (!field.is_bytes && field.number >= attribute_field::kDouble &&
               field.number <= attribute_field::kBool) {
      attribute.number = number_of(field);
      attribute.is_number = true;
    }
  }
  return attribute;
}

/// A node as it stands in the file: dependencies are ids.
struct RawNode {
  ChakraNode node;
  std::vector<std::uint64_t> dependencies;
  std::int64_t duration_micros = 0;
  std::int64_t duration_ns = 0;
  std::int64_t comm_size = 0;
  std::int64_t comm_type = 0;
  std::int64_t source = -1, destination = -1;
  std::int64_t host_ns = 0, product_ns = 0;
};

void add_ids(const WireField& field, std::vector<std::uint64_t>& ids) {
  if (!field.is_bytes) return ids.push_back(field.value);
  for (WireReader packed(field.bytes); !packed.at_end();) ids.push_back(packed.varint());
}

/// Names go into tables and JSON: one line of valid text.
std::string clean(std::string_view name) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f; };
  std::string text(name);
  if (std::ranges::all_of(text, is_plain)) return text;
  using nlohmann::json;
  text = json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  std::ranges::replace_if(
      text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, ' ');
  return text;
}

void take_attribute(const Attribute& attribute, RawNode& raw) {
  if (attribute.name == "pg_name") {
    raw.node.group = attribute.is_number ? std::to_string(attribute.number) : clean(attribute.text);
    return;
  }
  if (!attribute.is_number) return;
  const std::pair<std::string_view, std::int64_t*> numbers[] = {
      {"num_ops", &raw.node.operations}, {"tensor_size", &raw.node.tensor_bytes},
      {"comm_type", &raw.comm_type},     {"comm_size", &raw.comm_size},
      {"comm_tag", &raw.node.tag},       {"comm_src", &raw.source},
      {"comm_dst", &raw.destination},    {"duration_ns", &raw.duration_ns},
      {"host_ns", &raw.host_ns},         {"product_ns", &raw.product_ns}};
  for (const auto& [name, number] : numbers) {
    if (attribute.name == name) *number = attribute.number;
  }
  if (attribute.name == "is_cpu_op") raw.node.on_host = attribute.number != 0;
  if (attribute.name == "host_sync") raw.node.host_sync = attribute.number != 0;
}

RawNode raw_node(std::string_view bytes) {
  RawNode raw;
  std::uint64_t type = kInvalid;
  for (WireReader reader(bytes); !reader.at_end();) {
    const WireField field = reader.field();
    if (field.is(node_field::kId, false)) raw.node.id = field.value;
    if (field.is(node_field::kName, true)) raw.node.name = clean(field.bytes);
    if (field.is(node_field::kType, false)) type = field.value;
    if (field.number == node_field::kControlDeps || field.number == node_field::kDataDeps)
      add_ids(field, raw.dependencies);
    if (field.is(node_field::kDuration, false))
      raw.duration_micros = static_cast<std::int64_t>(field.value);
    if (field.is(node_field::kAttribute, true)) take_attribute(attribute_of(field.bytes), raw);
  }
  if (type <= kInvalid || type > kCollective)
    throw WireDamage("has node type " + std::to_string(type) + ", which the schema does not know");
  raw.node.type = static_cast<NodeType>(type);
  return raw;
}

void check_range(const char* what, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return;
  throw WireDamage(std::string(what) + " is " + std::to_string(value) + ", outside of 0 to " +
                   std::to_string(most));
}

/// The values that ChakraNode holds in other units. Throws WireDamage for impossible ones.
ChakraNode finished(RawNode raw) {
  constexpr std::int64_t kLongest = 1'000'000'000'000;  // microseconds: 11 days
  constexpr std::int64_t kLargest = 1'000'000'000'000'000'000;
  ChakraNode& node = raw.node;
  check_range("duration_micros", raw.duration_micros, kLongest);
  check_range("duration_ns", raw.duration_ns, kLongest * 1000);
  check_range("host_ns", raw.host_ns, kLongest * 1000);
  check_range("product_ns", raw.product_ns, kLongest * 1000);
  check_range("num_ops", node.operations, kLargest);
  check_range("tensor_size", node.tensor_bytes, kLargest);
  constexpr std::int64_t kMostBytes = 1'000'000'000'000;  // an all-gather's is multiplied by ranks
  check_range("comm_size", raw.comm_size, kMostBytes);
  if (node.type == kCollective) check_range("comm_type", raw.comm_type, kBarrier);
  node.duration = Seconds(raw.duration_ns > 0 ? static_cast<double>(raw.duration_ns) * 1e-9
                                              : static_cast<double>(raw.duration_micros) * 1e-6);
  node.host_time = Seconds(static_cast<double>(raw.host_ns) * 1e-9);
  node.product_time = Seconds(static_cast<double>(raw.product_ns) * 1e-9);
  node.bytes = Bytes(raw.comm_size);
  if (node.type == kCollective) node.collective = static_cast<CollectiveType>(raw.comm_type);
  node.peer = node.type == kSend ? raw.destination : raw.source;
  return std::move(node);
}

std::string whole_file(const std::filesystem::path& path) {
  const auto stream = open_input_file(path);
  stream->exceptions(std::ios::badbit);
  try {
    return {std::istreambuf_iterator<char>(*stream), {}};
  } catch (const std::ios_base::failure& error) {
    throw InputError(
        {path.string(), "cannot be read: " + std::string(error.what()), "give an undamaged file"});
  }
}

std::string version_of(std::string_view metadata) {
  std::string version;
  for (WireReader reader(metadata); !reader.at_end();) {
    const WireField field = reader.field();
    if (field.is(1, true)) version = field.bytes;
  }
  return version;
}

/// Reads the messages of a file; knows where it is, for the message of an error.
class TraceReader {
 public:
  explicit TraceReader(const std::filesystem::path& path) : bytes_(whole_file(path)) {
    trace_.file = path.string();
  }

  ChakraTrace read() {
    try {
      read_messages();
    } catch (const WireDamage& damage) {
      fail(damage.what(), "give a Chakra execution trace of version 0.0.4 or 1.0.0 (Protobuf)");
    }
    if (trace_.nodes.empty()) fail("has no nodes", "give a trace of a whole step");
    find_dependencies();
    return std::move(trace_);
  }

 private:
  void read_messages() {
    WireReader reader(bytes_);
    if (reader.at_end()) throw WireDamage("is empty");
    place_ = "its metadata";
    trace_.version = version_of(reader.delimited());
    if (trace_.version != "0.0.4" && trace_.version != "1.0.0")
      fail("name schema version \"" + trace_.version.substr(0, 40) + "\"",
           "convert the trace to 0.0.4 or 1.0.0, whose fields are the ones that are read");
    while (!reader.at_end()) {
      place_ = "node " + std::to_string(trace_.nodes.size());
      RawNode raw = raw_node(reader.delimited());
      dependencies_.push_back(std::move(raw.dependencies));
      place_ += " (id " + std::to_string(raw.node.id) + ")";
      trace_.nodes.push_back(finished(std::move(raw)));
      const std::uint64_t id = trace_.nodes.back().id;
      if (!position_.emplace(id, trace_.nodes.size() - 1).second)
        fail("repeats the id of another node", "number the nodes");
    }
  }

  void find_dependencies() {
    for (std::size_t i = 0; i < trace_.nodes.size(); ++i) {
      std::vector<std::size_t>& found = trace_.nodes[i].dependencies;
      for (const std::uint64_t id : dependencies_[i]) {
        const auto at = position_.find(id);
        place_ = "node " + std::to_string(i) + " (id " + std::to_string(trace_.nodes[i].id) + ")";
        if (at == position_.end())
          fail("depends on id " + std::to_string(id) + ", which no node has",
               "give the whole trace of the rank");
        found.push_back(at->second);
      }
      std::ranges::sort(found);
      found.erase(std::ranges::unique(found).begin(), found.end());
    }
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw InputError({trace_.file + ": " + place_, what, hint});
  }

  std::string bytes_;
  ChakraTrace trace_;
  std::string place_ = "file";
  std::vector<std::vector<std::uint64_t>> dependencies_;  // ids, by node
  std::unordered_map<std::uint64_t, std::size_t> position_;
};

}  // namespace

ChakraTrace read_chakra(const std::filesystem::path& file) {
  return TraceReader(file).read();
}

ChakraGroups read_chakra_groups(const std::filesystem::path& file) {
  const auto fail = [&](const std::string& what) {
    throw InputError({file.string(), what, "write {\"1\": [0, 1], ...}: ranks by name of group"});
  };
  ChakraGroups groups;
  try {
    const auto json = nlohmann::json::parse(whole_file(file));
    if (!json.is_object()) fail("is no object of groups");
    for (const auto& [name, ranks] : json.items()) {
      auto& members = groups[name] = ranks.get<std::vector<int>>();
      std::ranges::sort(members);
      const bool repeats = std::ranges::adjacent_find(members) != members.end();
      if (members.empty() || members.front() < 0 || repeats)
        fail("group " + name + " is no list of different ranks");
    }
  } catch (const nlohmann::json::exception& error) {
    fail(error.what());
  }
  return groups;
}

}  // namespace tessera
