#include <algorithm>
#include <cmath>

#include "sim/remat/io/formats.h"

namespace tessera::remat {
namespace {

constexpr std::int64_t kKib = 1024;
constexpr Nanoseconds kCentiMillisecond = 10'000;
/// No size or time in a file may be larger, so that conversions cannot overflow.
constexpr std::int64_t kLargest = std::int64_t{1} << 50;

std::int64_t scaled(const JsonFields& fields, const char* field, std::int64_t value,
                    std::int64_t unit) {
  if (value < 0 || value > kLargest / unit)
    fields.refuse(field, "holds " + std::to_string(value),
                  "give a value from 0 to 2^50 base units");
  return value * unit;
}

void require_count(const JsonFields& fields, const char* field, std::size_t count, std::size_t n) {
  if (count != n)
    fields.refuse(field, "has " + std::to_string(count) + " entries, not " + std::to_string(n),
                  "give one per operator");
}

/// One output per operator: the tensor has the number of its operator.
void add_inputs(const JsonFields& fields, const char* field, std::vector<OpSpec>& ops,
                std::size_t op, const std::vector<std::int64_t>& producers) {
  for (const std::int64_t producer : producers) {
    if (producer < 0 || producer >= static_cast<std::int64_t>(op))
      fields.refuse(
          field,
          "lets operator " + std::to_string(op) + " read operator " + std::to_string(producer),
          "list operators in program order");
    ops[op].inputs.push_back(static_cast<TensorId>(producer));
  }
}

}  // namespace

Nanoseconds to_nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

Instance read_golden(const JsonFields& file, int number) {
  const std::vector<JsonFields> all = file.objects("instances");
  const int count = static_cast<int>(all.size());
  if (number < 0 || number >= count)
    file.refuse("instances", "has no instance " + std::to_string(number),
                "give a number from 0 to " + std::to_string(count - 1));
  const JsonFields& one = all[number];
  const auto times = one.integers("dur");
  const auto sizes = one.integers("size");
  const auto work = one.integers("work");
  const auto deps = one.integer_lists("deps");
  require_count(one, "size", sizes.size(), times.size());
  require_count(one, "work", work.size(), times.size());
  require_count(one, "deps", deps.size(), times.size());
  std::vector<OpSpec> ops(times.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].name = "op" + std::to_string(i);
    ops[i].time = scaled(one, "dur", times[i], 1);
    ops[i].workspace = scaled(one, "work", work[i], 1);
    ops[i].out_bytes = {scaled(one, "size", sizes[i], 1)};
    add_inputs(one, "deps", ops, i, deps[i]);
  }
  std::vector<TensorId> keep;
  for (const std::int64_t q : one.integers("keep")) {
    if (q < 0 || q >= static_cast<std::int64_t>(ops.size()))
      one.refuse("keep", "names operator " + std::to_string(q), "name one of the graph");
    keep.push_back(static_cast<TensorId>(q));
  }
  Instance instance{.graph = Graph("instance " + std::to_string(number), ops, keep, 0),
                    .format = "golden",
                    .count = count};
  if (one.has("M")) instance.memory = one.integer("M");
  return instance;
}

Instance read_monet(const JsonFields& file) {
  const auto sizes = file.integers("mem_kib");
  const auto times = file.integers("cpu_centi_ms");
  const auto fixed = file.integers("fixed_kib");
  require_count(file, "cpu_centi_ms", times.size(), sizes.size());
  std::vector<OpSpec> ops(sizes.size());
  std::vector<std::string> names(sizes.size());
  if (file.has("op")) names = file.texts("op");
  require_count(file, "op", names.size(), sizes.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].name = names[i];
    ops[i].time = scaled(file, "cpu_centi_ms", times[i], kCentiMillisecond);
    ops[i].out_bytes = {scaled(file, "mem_kib", sizes[i], kKib)};
  }
  for (const auto& edge : file.integer_lists("edges")) {
    if (edge.size() != 2 || edge[1] < 0 || edge[1] >= static_cast<std::int64_t>(ops.size()))
      file.refuse("edges", "has an entry that is no pair of operators",
                  "give [producer, consumer]");
    add_inputs(file, "edges", ops, static_cast<std::size_t>(edge[1]), {edge[0]});
  }
  const ByteCount held = fixed.empty() ? 0 : scaled(file, "fixed_kib", fixed.back(), kKib);
  const std::string name = file.has("name") ? file.text("name") : "graph";
  const OpId backward =
      file.has("loss")
          ? static_cast<OpId>(std::clamp<std::int64_t>(file.integer("loss"), -1, 1 << 30)) + 1
          : -1;
  return {.graph = Graph(name, ops, {}, held, backward), .format = "monet"};
}

namespace {

OpSpec operator_of(const JsonFields& fields) {
  OpSpec op{.name = fields.has("name") ? fields.text("name") : "",
            .time = scaled(fields, "time_ns", fields.integer("time_ns"), 1),
            .recomputable = !fields.flag("fixed")};
  if (fields.has("workspace"))
    op.workspace = scaled(fields, "workspace", fields.integer("workspace"), 1);
  for (const std::int64_t bytes : fields.integers("out_bytes"))
    op.out_bytes.push_back(scaled(fields, "out_bytes", bytes, 1));
  return op;
}

}  // namespace

Instance read_operators(const JsonFields& file) {
  std::vector<OpSpec> ops;
  std::int64_t tensors = 0;
  for (const JsonFields& fields : file.objects("ops")) {
    OpSpec op = operator_of(fields);
    for (const std::int64_t tensor : fields.integers("inputs")) {
      if (tensor < 0 || tensor >= tensors)
        fields.refuse("inputs", "names tensor " + std::to_string(tensor),
                      "name one that an earlier operator makes, from 0");
      op.inputs.push_back(static_cast<TensorId>(tensor));
    }
    tensors += static_cast<std::int64_t>(op.out_bytes.size());
    ops.push_back(std::move(op));
  }
  const std::string name = file.has("name") ? file.text("name") : "graph";
  const std::int64_t backward = file.has("first_backward") ? file.integer("first_backward") : -1;
  if (backward < -1 || backward > static_cast<std::int64_t>(ops.size()))
    file.refuse("first_backward", "is " + std::to_string(backward), "give an operator, or none");
  return {.graph = Graph(name, ops, {}, 0, static_cast<OpId>(backward)), .format = "operators"};
}

Instance read_poet(const JsonFields& file) {
  const std::vector<JsonFields> nodes = file.objects("nodes");
  std::vector<OpSpec> ops(nodes.size());
  ByteCount held = 0;
  OpId backward = -1;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const JsonFields& node = nodes[i];
    if (node.integer("id") != static_cast<std::int64_t>(i))
      node.refuse("id", "is not " + std::to_string(i), "number the nodes from 0");
    const double seconds = node.number("runtime_s");
    if (!(seconds >= 0 && seconds < 1e6)) node.refuse("runtime_s", "is no time", "give seconds");
    ops[i].name = node.text("kind");
    ops[i].time = to_nanoseconds(seconds);
    ops[i].out_bytes = {scaled(node, "out_bytes", node.integer("out_bytes"), 1)};
    ops[i].recomputable = ops[i].name != "InputLayer";
    if (backward < 0 && node.flag("backward")) backward = static_cast<OpId>(i);
    held += scaled(node, "param_bytes", node.integer("param_bytes"), 1);
    for (const std::int64_t dep : node.integers("deps")) add_inputs(node, "deps", ops, i, {dep});
  }
  const std::string name = file.has("name") ? file.text("name") : "graph";
  return {.graph = Graph(name, ops, {}, held, backward), .format = "poet"};
}

}  // namespace tessera::remat
