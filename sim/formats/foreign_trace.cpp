#include "sim/formats/foreign_trace.h"

#include <string>

#include "hw/units/input_error.h"
#include "sim/formats/input_file.h"

namespace tessera {
namespace {

/// What a file begins with; nothing of one that cannot be read.
std::string head_of(const std::filesystem::path& file) {
  constexpr std::size_t kRead = std::size_t{1} << 16;
  std::string head(kRead, '\0');
  const auto stream = open_input_file(file);
  stream->read(head.data(), static_cast<std::streamsize>(kRead));
  head.resize(static_cast<std::size_t>(stream->gcount()));
  return head;
}

/// "1.1.1-chakra.0.0.4" of `"schema": "1.1.1-chakra.0.0.4"`.
std::string text_behind(const std::string& head, const std::string& key) {
  const std::size_t at = head.find('"' + key + '"');
  if (at == std::string::npos) return "";
  const std::size_t begin = head.find('"', head.find(':', at));
  const std::size_t end = head.find('"', begin + 1);
  constexpr std::size_t kLongest = 40;
  if (end == std::string::npos || end - begin > kLongest) return "";
  return head.substr(begin + 1, end - begin - 1);
}

}  // namespace

void refuse_json_trace(const std::filesystem::path& file) {
  const std::string head = head_of(file);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || head[first] != '{') return;
  const auto has = [&](const char* key) { return head.find(key) != std::string::npos; };
  if (has("\"traceEvents\""))
    throw InputError({file.string(), "is a profile of torch.profiler (Kineto), not a Chakra trace",
                      "put it beside a simulation with tessera compare"});
  if (!has("\"nodes\"") || !(has("\"ctrl_deps\"") || has("\"schema\""))) return;
  const std::string schema = text_behind(head, "schema");
  throw InputError(
      {file.string(),
       "is an execution trace of PyTorch (JSON" + (schema.empty() ? "" : ", schema " + schema) +
           "), which has no times of kernels: it is not a Chakra trace (Protobuf)",
       "make PREFIX.0.et of it and of the rank's Kineto trace with chakra_trace_link and "
       "chakra_converter PyTorch"});
}

}  // namespace tessera
