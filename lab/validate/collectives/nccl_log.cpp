#include "lab/validate/collectives/nccl_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "sim/collectives/collective_names.h"

namespace tessera {
namespace {

using LogJson = nlohmann::json;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr double kLeastMicroseconds = 1e-6;  ///< but for 0, which is skipped
constexpr double kMostMicroseconds = 1e12;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

template <class Number>
std::optional<Number> number_in(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// "all_reduce_perf", "build/all_reduce_perf" -> all_reduce.
std::optional<CollectiveKind> kind_in(std::string_view word) {
  const std::size_t suffix = word.find("_perf");
  if (suffix == std::string_view::npos) return std::nullopt;
  word = word.substr(0, suffix);
  const std::size_t slash = word.rfind('/');
  return collective_kind_of(slash == std::string_view::npos ? word : word.substr(slash + 1));
}

bool is_sound(std::optional<std::int64_t> bytes, std::optional<double> time) {
  return bytes && time && *bytes >= 0 && *bytes <= kMostBytes && std::isfinite(*time) &&
         (*time == 0 || *time >= kLeastMicroseconds) && *time <= kMostMicroseconds;
}

/// What a launcher puts before every line: "[1,0]<stdout>:" of mpirun --tag-output, "0: " of
/// srun --label.
std::string_view tag_of(std::string_view line) {
  if (line.starts_with('[')) {
    const std::size_t close = line.find("]<std");
    const std::size_t colon = close == line.npos ? close : line.find(">:", close);
    return colon == line.npos ? "" : line.substr(0, colon + 2);
  }
  const std::size_t digits = line.find_first_not_of(" 0123456789");
  const bool is_label = digits != line.npos && line.substr(digits).starts_with(": ") &&
                        line.find_first_of("0123456789") < digits;
  return is_label ? line.substr(0, digits + 1) : "";
}

void count_hosts(const std::map<std::string, int>& ranks, NcclLog& log) {
  log.nodes = static_cast<int>(ranks.size());
  for (const auto& [host, count] : ranks) log.even = log.even && count == ranks.begin()->second;
}

/// Reads the text form line by line.
class TextReader {
 public:
  explicit TextReader(const std::string& file) { log_.file = file; }

  void read(std::string_view line) {
    ++number_;
    tag_ = tag_of(line);
    const std::vector<std::string_view> words = words_of(line.substr(tag_.size()));
    if (words.empty()) return;
    for (const std::string_view word : words) {
      if (const auto kind = kind_in(word)) log_.collective = kind;
    }
    if (words[0].starts_with('#')) return read_comment(words);
    if (number_in<std::int64_t>(words[0]) && words.size() > 2) read_row(words);
  }

  NcclLog take() {
    count_hosts(ranks_of_host_, log_);
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return std::move(log_);
  }

 private:
  /// "#  Rank  0 Group  0 Pid  1234 on  node1 device  0 [0x07] NVIDIA A100", and the line that
  /// names the columns.
  void read_comment(const std::vector<std::string_view>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "size") in_table_ = true;
      if (in_table_ && (words[i] == "#wrong" || words[i] == "error")) checked_ = true;
    }
    if (words.size() < 3 || words[1] != "Rank") return;
    ++log_.ranks;
    for (std::size_t i = 2; i + 1 < words.size(); ++i) {
      if (words[i] == "on") ++ranks_of_host_[std::string(words[i + 1])];
    }
    add_device(words);
  }

  /// What stands behind "device 0 [0x07]".
  void add_device(const std::vector<std::string_view>& words) {
    const auto device = std::ranges::find(words, "device");
    std::string name;
    for (auto word = device; word != words.end(); ++word) {
      const bool is_place = word - device < 2 || word->starts_with('[') || word->ends_with(']');
      if (!is_place) name += (name.empty() ? "" : " ") + std::string(*word);
    }
    if (!name.empty()) log_.gpus.insert(name);
  }

  /// Processes of a build without MPI each print a table of their own.
  bool is_of_one_process() {
    if (log_.times.empty()) table_tag_ = tag_;
    if (table_tag_ == tag_) return true;
    problems_.push_back({log_.file + ":" + std::to_string(number_),
                         "rows from " + table_tag_ + " and from " + std::string(tag_) +
                             ": each process ran on its own",
                         "build nccl-tests with MPI=1, or give the lines of one process"});
    return false;
  }

  /// Columns before the time come and go with the version, those behind it do not: time, algbw,
  /// busbw and the number of wrong values, out of place and in place.
  void read_row(const std::vector<std::string_view>& words) {
    if (!in_table_) return;
    const std::size_t behind = checked_ ? 8 : 6;
    const auto bytes = number_in<std::int64_t>(words[0]);
    std::optional<double> time;
    if (words.size() >= behind + 2) time = number_in<double>(words[words.size() - behind]);
    if (!is_sound(bytes, time)) {
      problems_.push_back({log_.file + ":" + std::to_string(number_),
                           "not a row of nccl-tests: \"" + std::string(words[0]) + " ...\"",
                           "give the output as it was printed, or cut this line"});
      return;
    }
    if (*bytes == 0 || *time == 0 || !problems_.empty() || !is_of_one_process()) return;
    log_.times.push_back({Bytes(*bytes), Seconds(*time * 1e-6), std::string(words[2])});
  }

  NcclLog log_;
  std::map<std::string, int> ranks_of_host_;
  std::vector<Problem> problems_;
  std::size_t number_ = 0;
  std::string_view tag_;   ///< of the line that is read
  std::string table_tag_;  ///< of the rows
  bool in_table_ = false;
  bool checked_ = false;
};

std::string text_in(const LogJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double time_in(const LogJson& row) {
  const auto place = row.find("out_of_place");
  if (place == row.end() || !place->is_object()) return -1;
  const auto time = place->find("time");
  return time != place->end() && time->is_number() ? time->get<double>() : -1;
}

void read_json_row(const LogJson& row, std::size_t position, NcclLog& log) {
  const auto size = row.is_object() ? row.find("size") : row.end();
  std::optional<std::int64_t> bytes;
  if (row.is_object() && size != row.end() && size->is_number_integer())
    bytes = size->get<std::int64_t>();
  const double time = row.is_object() ? time_in(row) : -1;
  if (!is_sound(bytes, time))
    throw InputError({log.file, "results[" + std::to_string(position) + "] is no measurement",
                      "nccl-tests writes size and out_of_place.time"});
  if (*bytes == 0 || time == 0) return;
  log.times.push_back({Bytes(*bytes), Seconds(time * 1e-6), text_in(row, "type")});
}

/// Devices are listed with their host names.
void read_devices(const LogJson& json, NcclLog& log) {
  const auto devices = json.find("devices");
  if (devices == json.end() || !devices->is_array()) return;
  std::map<std::string, int> hosts;
  for (const LogJson& device : *devices) {
    if (!device.is_object()) continue;
    ++log.ranks;
    ++hosts[text_in(device, "hostname") + text_in(device, "host")];
    const std::string name = text_in(device, "device_name") + text_in(device, "name");
    if (!name.empty()) log.gpus.insert(name);
  }
  count_hosts(hosts, log);
}

NcclLog parse_json(std::string_view text, const std::string& file) {
  NcclLog log;
  log.file = file;
  const LogJson json = LogJson::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    throw InputError({file, "not JSON of nccl-tests", "run nccl-tests with -J FILE"});
  for (const char* key : {"test", "collective", "name", "program", "args"}) {
    const std::string value = text_in(json, key);
    for (const std::string_view word : words_of(value)) {
      const auto kind = kind_in(word);
      if (kind) log.collective = kind;
    }
    if (!log.collective) log.collective = collective_kind_of(value);
  }
  read_devices(json, log);
  const auto results = json.find("results");
  if (results == json.end() || !results->is_array())
    throw InputError({file, "no list \"results\"", "run nccl-tests with -J FILE"});
  for (std::size_t i = 0; i < results->size(); ++i) read_json_row((*results)[i], i, log);
  return log;
}

}  // namespace

NcclLog parse_nccl_log(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  NcclLog log;
  if (first != std::string_view::npos && text[first] == '{') {
    log = parse_json(text, file);
  } else {
    TextReader reader(file);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      reader.read(text.substr(at, end - at));
      at = end + 1;
    }
    log = reader.take();
  }
  if (log.times.empty())
    throw InputError({file, "no measurement in it", "give the output of an nccl-tests program"});
  return log;
}

NcclLog read_nccl_log(const std::filesystem::path& file) {
  return parse_nccl_log(read_whole_file(file, "give the output of nccl-tests"), file.string());
}

}  // namespace tessera
