#include "sim/formats/kineto_host.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/input_error.h"
#include "sim/formats/kineto_events.h"

namespace tessera {
namespace {

/// A launch into a full queue takes as long as the GPU needs to make room: many times what others
/// take, and longer than a slow one by itself.
constexpr double kBlockedLaunches = 20;
constexpr double kBlockedLaunchUs = 50;

enum class CallKind { operator_call, compiled, collective, message };
constexpr std::size_t kCallKinds = 4;

struct Span {
  double begin_us = 0;
  double end_us = 0;
};

struct Call {
  Span span;
  std::int64_t thread = 0;
  CallKind kind = CallKind::operator_call;
};

bool starts_with_any(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view part) { return name.starts_with(part); });
}

/// Of an operator's name, "aten::mm"; nothing for ranges that hold operators. Names: PyTorch 2.x.
std::optional<CallKind> kind_of_operator(std::string_view name) {
  constexpr std::array<std::string_view, 2> kMessages{"c10d::send", "c10d::recv"};
  constexpr std::array<std::string_view, 3> kCollectives{
      "c10d::", "_c10d_functional::", "c10d_functional::"};
  if (starts_with_any(name, kMessages)) return CallKind::message;
  if (name.starts_with("_c10d_functional::wait_tensor")) return CallKind::operator_call;
  if (starts_with_any(name, kCollectives)) return CallKind::collective;
  if (name.starts_with("triton_")) return CallKind::compiled;
  if (name.starts_with("autograd::")) return std::nullopt;
  const bool is_operator =
      name.find("::") != std::string_view::npos && name.find_first_of(" .(") == name.npos;
  return is_operator ? std::optional(CallKind::operator_call) : std::nullopt;
}

/// What torch.compile's code runs in.
bool is_compiled_region(std::string_view name) {
  constexpr std::array<std::string_view, 3> kRegions{"Torch-Compiled Region",
                                                     "## Call CompiledFxGraph", "CompiledFunction"};
  return starts_with_any(name, kRegions);
}

/// Calls of the CUDA runtime and driver in which the host waits for the GPU or for memory.
bool waits(std::string_view name) {
  constexpr std::array<std::string_view, 5> kWaits{"cudaMalloc", "cudaFree", "cudaHostAlloc",
                                                   "cuMemAlloc", "cuMemFree"};
  const bool copies = name == "cudaMemcpy" || name == "cudaMemcpy2D";
  return copies || name.find("Synchronize") != name.npos || starts_with_any(name, kWaits);
}

HostCallCost cost_of(std::vector<double>& times_us) {
  HostCallCost cost;
  cost.calls = static_cast<std::int64_t>(times_us.size());
  if (times_us.empty()) return cost;
  const auto middle = times_us.begin() + cost.calls / 2;
  std::ranges::nth_element(times_us, middle);
  cost.median = Seconds(*middle * 1e-6);
  const double sum = std::accumulate(times_us.begin(), times_us.end(), 0.0);
  cost.mean = Seconds(sum / static_cast<double>(cost.calls) * 1e-6);
  return cost;
}

/// Keeps of every event of the host what is needed of it.
class HostCollector {
 public:
  void take(const nlohmann::json& event) {
    if (event_word(event, "ph") != "X") return;
    const std::string category = event_word(event, "cat");
    const std::string name = event_word(event, "name");
    const double begin = event_number(event, "ts");
    const Span span{begin, begin + event_number(event, "dur")};
    const auto thread = static_cast<std::int64_t>(event_number(event, "tid"));
    if (category == "cpu_op" || category == "user_annotation") {
      if (name.starts_with("ProfilerStep")) {
        steps_.insert(name);
        step_begins_.insert(span.begin_us);
        last_step_end_us_ = std::max(last_step_end_us_, span.end_us);
      }
      if (is_compiled_region(name)) compiled_[thread].push_back(span);
      const auto kind = category == "cpu_op" ? kind_of_operator(name) : std::nullopt;
      if (kind) calls_.push_back({span, thread, *kind});
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      if (waits(name)) waits_.push_back(span.begin_us);
      if (name.find("Launch") != name.npos) launches_.push_back(span);
    }
  }

  HostTrace trace() && {
    keep_outer_calls();
    mark_compiled();
    add_blocked_launches();
    std::ranges::sort(waits_);
    return measured();
  }

 private:
  void keep_outer_calls() {
    std::ranges::stable_sort(calls_, {}, [](const Call& call) { return call.span.begin_us; });
    std::map<std::int64_t, double> busy_until;
    std::erase_if(calls_, [&](const Call& call) {
      double& end = busy_until.try_emplace(call.thread, call.span.begin_us).first->second;
      if (call.span.begin_us < end) return true;
      end = call.span.end_us;
      return false;
    });
  }

  void mark_compiled() {
    for (auto& [thread, regions] : compiled_) std::ranges::sort(regions, {}, &Span::begin_us);
    for (Call& call : calls_) {
      const auto of_thread = compiled_.find(call.thread);
      if (call.kind != CallKind::operator_call || of_thread == compiled_.end()) continue;
      const std::vector<Span>& regions = of_thread->second;
      const auto after = std::ranges::upper_bound(regions, call.span.begin_us, {}, &Span::begin_us);
      const bool inside = after != regions.begin() && call.span.begin_us < std::prev(after)->end_us;
      if (inside) call.kind = CallKind::compiled;
    }
  }

  void add_blocked_launches() {
    if (launches_.empty()) return;
    std::vector<double> lengths;
    for (const Span& launch : launches_) lengths.push_back(launch.end_us - launch.begin_us);
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::ranges::nth_element(lengths, middle);
    const double longest = std::max(kBlockedLaunchUs, kBlockedLaunches * *middle);
    for (const Span& launch : launches_)
      if (launch.end_us - launch.begin_us > longest) waits_.push_back(launch.begin_us);
  }

  bool waits_between(double begin_us, double end_us) const {
    const auto first = std::ranges::lower_bound(waits_, begin_us);
    return first != waits_.end() && *first < end_us;
  }
  /// True where no steps are marked.
  bool in_one_step(double begin_us, double end_us) const {
    if (steps_.empty()) return true;
    const auto next = step_begins_.upper_bound(begin_us);
    const bool begins_another = next != step_begins_.end() && *next <= end_us;
    return next != step_begins_.begin() && begin_us < last_step_end_us_ && !begins_another;
  }

  HostTrace measured() const {
    HostTrace trace;
    trace.steps = static_cast<int>(steps_.size());
    std::array<std::vector<double>, kCallKinds> times;
    for (std::size_t i = 0; i + 1 < calls_.size(); ++i) {
      const Call &call = calls_[i], &next = calls_[i + 1];
      const double begin = call.span.begin_us, end = next.span.begin_us;
      if (!in_one_step(begin, end)) continue;
      if (call.thread != next.thread || waits_between(begin, end)) {
        ++trace.waited;
      } else {
        times[static_cast<std::size_t>(call.kind)].push_back(end - begin);
      }
    }
    trace.operators = cost_of(times[0]);
    trace.compiled = cost_of(times[1]);
    trace.collectives = cost_of(times[2]);
    trace.messages = cost_of(times[3]);
    return trace;
  }

  std::vector<Call> calls_;
  std::map<std::int64_t, std::vector<Span>> compiled_;  ///< by thread
  std::vector<Span> launches_;
  std::vector<double> waits_;
  std::set<std::string> steps_;
  std::set<double> step_begins_;
  double last_step_end_us_ = 0;
};

}  // namespace

HostTrace read_host_trace(const std::filesystem::path& path) {
  HostCollector events;
  for_each_trace_event(path, [&](const nlohmann::json& event) { events.take(event); });
  const HostTrace trace = std::move(events).trace();
  if (trace.operators.calls + trace.compiled.calls == 0) {
    throw InputError({path.string(), "holds no operators of the host that follow one another",
                      "give a trace of torch.profiler with ProfilerActivity.CPU"});
  }
  return trace;
}

}  // namespace tessera
