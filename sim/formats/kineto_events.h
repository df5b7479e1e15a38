#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tessera {

/// Calls `take` with every event of a Chrome trace as torch.profiler writes it, plain or gzip, one
/// after the other: none is kept. Throws InputError with what is wrong in the file.
void for_each_trace_event(const std::filesystem::path& path,
                          const std::function<void(const nlohmann::json&)>& take);

/// 0 and "" where the event has no such number or text.
double event_number(const nlohmann::json& event, const char* key);
std::string event_word(const nlohmann::json& event, const char* key);

}  // namespace tessera
