#include "sim/formats/chakra/chakra_reader.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <google/protobuf/io/coded_stream.h>

#include "hw/units/input_error.h"
#include "sim/formats/chakra/chakra.pb.h"
#include "sim/formats/input_file.h"

namespace tessera {
namespace {

using namespace chakra;

/// Bytes that are no trace.
class Damage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::int64_t whole(double value) {
  constexpr double kLargest = 9e18;
  if (!(value > -kLargest && value < kLargest)) return 0;
  return static_cast<std::int64_t>(value);
}

/// Nothing for text, and for lists and bytes, which nothing here needs.
std::optional<std::int64_t> number_of(const wire::Attribute& attribute) {
  switch (attribute.value_case()) {
    case wire::Attribute::kAsDouble:
      return whole(attribute.as_double());
    case wire::Attribute::kAsFloat:
      return whole(attribute.as_float());
    case wire::Attribute::kAsInt32:
      return attribute.as_int32();
    case wire::Attribute::kAsInt64:
      return attribute.as_int64();
    case wire::Attribute::kAsUint32:
      return attribute.as_uint32();
    case wire::Attribute::kAsUint64:
      return static_cast<std::int64_t>(attribute.as_uint64());
    case wire::Attribute::kAsSint32:
      return attribute.as_sint32();
    case wire::Attribute::kAsSint64:
      return attribute.as_sint64();
    case wire::Attribute::kAsFixed32:
      return attribute.as_fixed32();
    case wire::Attribute::kAsFixed64:
      return static_cast<std::int64_t>(attribute.as_fixed64());
    case wire::Attribute::kAsSfixed32:
      return attribute.as_sfixed32();
    case wire::Attribute::kAsSfixed64:
      return attribute.as_sfixed64();
    case wire::Attribute::kAsBool:
      return attribute.as_bool() ? 1 : 0;
    default:
      return std::nullopt;
  }
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

void take_attribute(const wire::Attribute& attribute, RawNode& raw) {
  const std::optional<std::int64_t> value = number_of(attribute);
  if (attribute.name() == "pg_name") {
    raw.node.group = value ? std::to_string(*value) : clean(attribute.as_string());
    return;
  }
  if (!value) return;
  const std::pair<std::string_view, std::int64_t*> numbers[] = {
      {"num_ops", &raw.node.operations}, {"tensor_size", &raw.node.tensor_bytes},
      {"comm_type", &raw.comm_type},     {"comm_size", &raw.comm_size},
      {"comm_tag", &raw.node.tag},       {"comm_src", &raw.source},
      {"comm_dst", &raw.destination},    {"duration_ns", &raw.duration_ns},
      {"host_ns", &raw.host_ns},         {"product_ns", &raw.product_ns}};
  for (const auto& [name, number] : numbers) {
    if (attribute.name() == name) *number = *value;
  }
  if (attribute.name() == "is_cpu_op") raw.node.on_host = *value != 0;
  if (attribute.name() == "host_sync") raw.node.host_sync = *value != 0;
}

/// Throws Damage where `bytes` are none.
template <class Message>
Message parsed(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw Damage("is no Protobuf message of that kind");
  return message;
}

RawNode raw_node(std::string_view bytes) {
  const auto node = parsed<wire::Node>(bytes);
  RawNode raw;
  raw.node.id = node.id();
  raw.node.name = clean(node.name());
  raw.dependencies.assign(node.control_deps().begin(), node.control_deps().end());
  raw.dependencies.insert(raw.dependencies.end(), node.data_deps().begin(), node.data_deps().end());
  raw.duration_micros = node.duration_micros();
  for (const wire::Attribute& attribute : node.attributes()) take_attribute(attribute, raw);
  if (node.type() <= kInvalid || node.type() > kCollective)
    throw Damage("has node type " + std::to_string(node.type()) +
                 ", which the schema does not know");
  raw.node.type = static_cast<NodeType>(node.type());
  return raw;
}

void check_range(const char* what, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return;
  throw Damage(std::string(what) + " is " + std::to_string(value) + ", outside of 0 to " +
               std::to_string(most));
}

/// The values that ChakraNode holds in other units. Throws Damage for impossible ones.
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

/// The messages of a file: each behind its length.
class MessageStream {
 public:
  explicit MessageStream(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view next() {
    constexpr std::size_t kLongestVarint = 10;
    google::protobuf::io::CodedInputStream start(
        reinterpret_cast<const std::uint8_t*>(rest_.data()),
        static_cast<int>(std::min(rest_.size(), kLongestVarint)));
    std::uint64_t size = 0;
    if (!start.ReadVarint64(&size)) throw Damage("has no length that can be read");
    rest_.remove_prefix(static_cast<std::size_t>(start.CurrentPosition()));
    if (size > rest_.size())
      throw Damage("ends " + std::to_string(size - rest_.size()) + " bytes too early");
    if (size > kMostBytes) throw Damage("is a message of " + std::to_string(size) + " bytes");
    const std::string_view message = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return message;
  }

 private:
  static constexpr std::uint64_t kMostBytes = std::numeric_limits<int>::max();  // Protobuf's own

  std::string_view rest_;
};

/// Reads the messages of a file; knows where it is, for the message of an error.
class TraceReader {
 public:
  explicit TraceReader(const std::filesystem::path& path) : bytes_(read_input_file(path)) {
    trace_.file = path.string();
  }

  ChakraTrace read() {
    try {
      read_messages();
    } catch (const Damage& damage) {
      fail(damage.what(), "give a Chakra execution trace of version 0.0.4 or 1.0.0 (Protobuf)");
    }
    if (trace_.nodes.empty()) fail("has no nodes", "give a trace of a whole step");
    find_dependencies();
    return std::move(trace_);
  }

 private:
  void read_messages() {
    MessageStream messages(bytes_);
    if (messages.at_end()) throw Damage("is empty");
    place_ = "its metadata";
    trace_.version = parsed<wire::Metadata>(messages.next()).version();
    if (trace_.version != "0.0.4" && trace_.version != "1.0.0")
      fail("name schema version \"" + trace_.version.substr(0, 40) + "\"",
           "convert the trace to 0.0.4 or 1.0.0, whose fields are the ones that are read");
    while (!messages.at_end()) {
      place_ = "node " + std::to_string(trace_.nodes.size());
      RawNode raw = raw_node(messages.next());
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
      found.erase(std::unique(found.begin(), found.end()), found.end());
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
    const auto json = nlohmann::json::parse(read_input_file(file));
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
