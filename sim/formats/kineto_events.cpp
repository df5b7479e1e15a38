#include "sim/formats/kineto_events.h"

#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "sim/formats/input_file.h"

namespace tessera {

void for_each_trace_event(const std::filesystem::path& path,
                          const std::function<void(const nlohmann::json&)>& take) {
  using Json = nlohmann::json;
  const auto stream = open_input_file(path);
  // Events leave the document as soon as they are read.
  const auto on_part = [&](int depth, Json::parse_event_t part, Json& parsed) {
    if (part != Json::parse_event_t::object_end || depth != 2 || !parsed.contains("ph"))
      return true;
    take(parsed);
    return false;
  };
  try {
    [[maybe_unused]] const Json rest = Json::parse(*stream, on_part);
  } catch (const Json::exception& error) {
    throw InputError({path.string(), std::string("is no JSON: ") + error.what(),
                      "give a trace of torch.profiler"});
  } catch (const std::ios_base::failure& error) {
    throw InputError({path.string(), "is damaged gzip data", "write the trace again"});
  }
}

double event_number(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

std::string event_word(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace tessera
