#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "hw/units/input_error.h"
#include "sim/remat/io/formats.h"

namespace tessera::remat {
namespace {

constexpr std::int64_t kLargestNumber = std::int64_t{1} << 50;

/// Bytes that one or several names (views) share.
struct Storage {
  ByteCount bytes = 0;
  int names = 0;         ///< not released yet
  TensorId tensor = -1;  ///< -1: a constant
  std::size_t op = 0;    ///< its producer
};

/// Follows the names of a log to storages, and counts live bytes as the framework's reference
/// counts do: a storage, constants included, is freed with its last name.
class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) {}

  void read(const std::string& text) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      ++line_;
      if (end > begin) instruction(parse(text.data() + begin, text.data() + end));
      begin = end + 1;
    }
    finish_call();
  }

  Instance instance() const {
    std::vector<TensorId> keep;
    for (const Storage& storage : storages_)
      if (storage.tensor >= 0 && storage.names > 0) keep.push_back(storage.tensor);
    return {.graph = Graph(std::filesystem::path(file_).stem().string(), ops_, keep, constants_,
                           backward_),
            .format = "dtr",
            .release_peak = peak_};
  }

 private:
  using Json = nlohmann::json;
  struct Result {
    std::string name;
    ByteCount bytes = -1;
    std::int64_t alias = -2;  ///< index of the argument that it is a view of; -1: none
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError({.where = file_ + ":" + std::to_string(line_),
                      .what = what,
                      .hint = "give an operator log as the DTR prototype writes it"});
  }

  Json parse(const char* begin, const char* end) const {
    Json json = Json::parse(begin, end, nullptr, false);
    if (!json.is_object()) refuse("is no JSON object");
    return json;
  }

  std::string text(const Json& json, const char* field) const {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_string()) refuse(std::string("has no text ") + field);
    return found->get<std::string>();
  }

  /// Numbers are written as text.
  std::int64_t number(const Json& json, const char* field) const {
    const std::string digits = text(json, field);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < -1 ||
        value > kLargestNumber)
      refuse(std::string(field) + " is '" + digits + "', not a number from 0 to 2^50");
    return value;
  }

  std::vector<std::string> names(const Json& json, const char* field) const {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_array()) refuse(std::string("has no list ") + field);
    std::vector<std::string> values;
    for (const Json& value : *found) {
      if (!value.is_string()) refuse(std::string(field) + " holds what is no name");
      values.push_back(value.get<std::string>());
    }
    return values;
  }

  std::size_t storage_of(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) refuse("uses '" + name + "', which is not defined or was released");
    return found->second;
  }

  void bind(const std::string& name, std::size_t storage) {
    ++storages_[storage].names;
    const auto [entry, fresh] = names_.emplace(name, storage);
    if (fresh) return;
    forget(entry->second);
    entry->second = storage;
  }

  void forget(std::size_t storage) {
    if (--storages_[storage].names == 0) live_ -= storages_[storage].bytes;
  }

  std::size_t allocate(ByteCount bytes, bool constant) {
    if (bytes < 0) refuse("has a negative size");
    storages_.push_back({.bytes = bytes, .tensor = constant ? -1 : tensors_++, .op = ops_.size()});
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    if (constant) constants_ += bytes;
    return storages_.size() - 1;
  }

  void instruction(const Json& json) {
    const std::string kind = text(json, "INSTRUCTION");
    if (kind == "MEMORY") return memory(text(json, "NAME"), number(json, "MEMORY"));
    if (kind == "ALIAS") return alias(text(json, "NAME"), number(json, "ALIAS"));
    finish_call();
    if (kind == "CONSTANT") constant_ = text(json, "NAME");
    if (kind == "ANNOTATE" && text(json, "ANNOTATION") == "BACKWARD")
      backward_ = static_cast<OpId>(ops_.size());
    if (kind == "CALL") call(json);
    if (kind == "MUTATE") mutate(json);
    if (kind == "COPY") bind(text(json, "DST"), storage_of(text(json, "SRC")));
    if (kind == "COPY_FROM") bind(text(json, "DST"), storage_of(text(json, "SRC")));
    if (kind == "RELEASE") release(text(json, "NAME"));
  }

  void memory(const std::string& name, ByteCount bytes) {
    if (name == constant_) {
      constant_.clear();
      return bind(name, allocate(bytes, true));
    }
    result(name).bytes = bytes;
  }

  void alias(const std::string& name, std::int64_t argument) {
    if (argument >= static_cast<std::int64_t>(arguments_.size()))
      refuse("is a view of argument " + std::to_string(argument) + ", which the call has not");
    result(name).alias = argument;
  }

  Result& result(const std::string& name) {
    for (Result& entry : results_)
      if (entry.name == name) return entry;
    refuse("describes '" + name + "', which the last call does not return");
  }

  void release(const std::string& name) {
    forget(storage_of(name));
    names_.erase(name);
  }

  OpSpec reading_arguments(const Json& json) {
    OpSpec op{.name = text(json, "NAME"), .time = std::max<std::int64_t>(0, number(json, "TIME"))};
    arguments_.clear();
    for (const std::string& name : names(json, "ARGS")) arguments_.push_back(storage_of(name));
    for (const std::size_t storage : arguments_)
      if (storages_[storage].tensor >= 0) op.inputs.push_back(storages_[storage].tensor);
    return op;
  }

  void call(const Json& json) {
    call_ = reading_arguments(json);
    for (const std::string& name : names(json, "RESULT")) results_.push_back({.name = name});
    in_call_ = true;
  }

  /// Once the sizes of all results are known.
  void finish_call() {
    if (!in_call_) return;
    in_call_ = false;
    std::size_t viewed = storages_.size();
    for (const Result& result : results_) {
      if (result.alias == -2 || (result.alias < 0 && result.bytes < 0))
        refuse("ends the call of '" + call_.name + "' without MEMORY and ALIAS of '" + result.name +
               "'");
      if (result.alias >= 0) {
        viewed = arguments_[static_cast<std::size_t>(result.alias)];
        bind(result.name, viewed);
        continue;
      }
      call_.out_bytes.push_back(result.bytes);
      bind(result.name, allocate(result.bytes, false));
    }
    const bool only_views = call_.out_bytes.empty() && viewed < storages_.size();
    if (only_views && storages_[viewed].tensor >= 0) {
      ops_[storages_[viewed].op].time += call_.time;
    } else {
      if (only_views) call_.inputs.clear();  // a view of a constant
      ops_.push_back(call_);
    }
    results_.clear();
  }

  void mutate(const Json& json) {
    OpSpec op = reading_arguments(json);
    const std::vector<std::string> arguments = names(json, "ARGS");
    const auto list = json.find("MUTATE");
    if (list == json.end() || !list->is_array()) refuse("has no list MUTATE");
    for (const Json& index : *list) {
      if (!index.is_number_unsigned() || index.get<std::size_t>() >= arguments.size())
        refuse("mutates argument " + index.dump() + ", which it has not");
      const ByteCount bytes = storages_[arguments_[index.get<std::size_t>()]].bytes;
      op.out_bytes.push_back(bytes);
      bind(arguments[index.get<std::size_t>()], allocate(bytes, false));
    }
    ops_.push_back(op);
  }

  std::string file_;
  std::size_t line_ = 0;
  std::unordered_map<std::string, std::size_t> names_;  // looked up only, never iterated
  std::vector<Storage> storages_;
  std::vector<OpSpec> ops_;
  ByteCount live_ = 0, peak_ = 0, constants_ = 0;
  TensorId tensors_ = 0;
  OpId backward_ = -1;
  std::string constant_;
  OpSpec call_;
  bool in_call_ = false;
  std::vector<std::size_t> arguments_;
  std::vector<Result> results_;
};

}  // namespace

Instance read_dtr_log(const std::string& text, const std::string& file) {
  LogReader reader(file);
  reader.read(text);
  return reader.instance();
}

}  // namespace tessera::remat
