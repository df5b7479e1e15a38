#include "app/explain/step_profile.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "sim/formats/input_file.h"

namespace tessera {
namespace {

using ProfileJson = nlohmann::ordered_json;

/// In the order of printing.
constexpr std::array kTracePhases{"forward",    "backward",      "optimizer",
                                  "contention", "communication", "idle"};

std::string coarse_phase(const std::string& phase) {
  if (phase == "forward" || phase == "loss") return "forward";
  if (phase == "optimizer" || phase == "gradient_reduction") return "optimizer";
  if (phase.starts_with("exposed_")) return "communication";
  if (phase == "backward" || phase == "contention") return phase;
  return "idle";
}

std::string coarse_class(const std::string& kind) {
  static const std::map<std::string, TraceOpClass> kClasses{
      {"gemm", TraceOpClass::product},
      {"batched_gemm", TraceOpClass::product},
      {"grouped_gemm", TraceOpClass::product},
      {"convolution", TraceOpClass::product},
      {"attention", TraceOpClass::attention},
      {"softmax", TraceOpClass::softmax},
      {"layer_norm", TraceOpClass::normalization},
      {"elementwise", TraceOpClass::elementwise},
      {"copy", TraceOpClass::elementwise},
      {"fill", TraceOpClass::elementwise},
      {"reduction", TraceOpClass::reduction},
      {"gather", TraceOpClass::gather_scatter},
      {"scatter", TraceOpClass::gather_scatter},
      {"multi_tensor", TraceOpClass::multi_tensor}};
  const auto found = kClasses.find(kind);
  return std::string(label_of(found == kClasses.end() ? TraceOpClass::other : found->second));
}

void add(NamedTimes& times, const std::string& name, double seconds) {
  const auto found =
      std::ranges::find_if(times, [&](const auto& entry) { return entry.first == name; });
  if (found == times.end()) {
    times.emplace_back(name, seconds);
  } else {
    found->second += seconds;
  }
}

std::string printed(const ProfileJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

StepProfile profile_of_document(const ProfileJson& result) {
  StepProfile profile{.name = result.at("scenario"), .step_time_s = result.at("step_time_s")};
  profile.peak_memory_bytes = result.at("memory").at("peak_bytes").get<double>();
  profile.tokens_per_s = result.at("tokens_per_s").get<double>();
  for (const auto& [name, value] : result.at("provenance").items()) {
    if (name != "tessera_version" && name != "peak_flops_per_gpu")
      profile.setup.emplace_back(name, printed(value));
  }
  for (const auto& [name, entry] : result.at("breakdown").items())
    profile.phases.emplace_back(name, entry.at("seconds").get<double>());
  for (const ProfileJson& entry : result.at("kernel_kinds"))
    profile.classes.emplace_back(entry.at("kind").get<std::string>(),
                                 entry.at("seconds").get<double>());
  return profile;
}

constexpr const char* phase_name(TracePhase phase) {
  switch (phase) {
    case TracePhase::forward:
      return "forward";
    case TracePhase::backward:
      return "backward";
    case TracePhase::optimizer:
      break;
  }
  return "optimizer";
}

/// Time that is covered by nothing before, as kernels come in order of their start.
class Coverage {
 public:
  Seconds uncovered(Seconds start, Seconds end) {
    const Seconds from = std::max(start, covered_until_);
    covered_until_ = std::max(covered_until_, end);
    return std::max(Seconds(), end - from);
  }

 private:
  Seconds covered_until_;
};

/// Parts of [start, end) that no interval of `busy` (disjoint, ascending) covers, summed.
Seconds outside_of(const std::vector<std::pair<Seconds, Seconds>>& busy, Seconds start,
                   Seconds end) {
  Seconds left = end - start;
  auto first = std::ranges::upper_bound(busy, start, {}, &std::pair<Seconds, Seconds>::second);
  for (; first != busy.end() && first->first < end; ++first)
    left -= std::min(end, first->second) - std::max(start, first->first);
  return left;
}

}  // namespace

StepProfile profile_of_result(const std::string& json, const std::string& where) {
  try {
    const ProfileJson document = ProfileJson::parse(json);
    if (document.at("schema") != "tessera.result/1")
      throw InputError({where, "has schema " + document.at("schema").dump(),
                        "give a result of tessera simulate --format json"});
    return profile_of_document(document);
  } catch (const ProfileJson::exception& error) {
    throw InputError({where, std::string("is no result: ") + error.what(),
                      "give a result of tessera simulate --format json, a scenario (.yaml) or a "
                      "trace of torch.profiler"});
  }
}

StepProfile profile_of_trace(const KinetoTrace& trace, const std::string& where) {
  StepProfile profile{.name = where, .kind = ProfileKind::trace, .note = trace.note};
  const double steps = trace.steps;
  profile.step_time_s = trace.window.value() / steps;
  for (const char* phase : kTracePhases) profile.phases.emplace_back(phase, 0.0);
  std::vector<std::pair<Seconds, Seconds>> busy;
  Coverage kernels;
  Coverage everything;
  Seconds covered;
  for (const TraceKernel& kernel : trace.kernels) {
    const Seconds end = std::min(kernel.end, trace.window);
    add(profile.classes, std::string(label_of(kernel.op_class)),
        (kernel.end - kernel.start).value() / steps);
    covered += everything.uncovered(kernel.start, end);
    if (kernel.op_class == TraceOpClass::communication) continue;
    const Seconds own = kernels.uncovered(kernel.start, end);
    add(profile.phases, phase_name(kernel.phase), own.value() / steps);
    if (own > Seconds()) busy.emplace_back(end - own, end);
  }
  Coverage collectives;
  for (const TraceKernel& kernel : trace.kernels) {
    if (kernel.op_class != TraceOpClass::communication) continue;
    const Seconds end = std::min(kernel.end, trace.window);
    const Seconds own = collectives.uncovered(kernel.start, end);
    if (own <= Seconds()) continue;
    add(profile.phases, "communication", outside_of(busy, end - own, end).value() / steps);
  }
  add(profile.phases, "idle", (trace.window - covered).value() / steps);
  return profile;
}

StepProfile in_terms_of_traces(const StepProfile& profile) {
  if (profile.kind == ProfileKind::trace) return profile;
  StepProfile coarse = profile;
  coarse.phases.clear();
  for (const char* phase : kTracePhases) coarse.phases.emplace_back(phase, 0.0);
  for (const auto& [name, seconds] : profile.phases)
    add(coarse.phases, coarse_phase(name), seconds);
  coarse.classes.clear();
  for (const auto& [name, seconds] : profile.classes)
    add(coarse.classes, coarse_class(name), seconds);
  return coarse;
}

bool is_trace(const std::filesystem::path& file) {
  // In traces of torch.profiler the key comes within the device properties' length; in ours first.
  const auto stream = open_input_file(file);
  std::string head(1 << 20, '\0');
  stream->read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream->gcount()));
  const std::size_t schema = head.find("\"tessera.result/1\"");
  return schema == std::string::npos && head.find("\"traceEvents\"") != std::string::npos;
}

}  // namespace tessera
