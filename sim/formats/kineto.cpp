#include "sim/formats/kineto.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"
#include "sim/formats/kineto_events.h"
#include "sim/formats/kineto_steps.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, kTraceOpClassCount> kTraceOpLabels{
    "product",   "attention",      "softmax",      "normalization", "elementwise",
    "reduction", "gather_scatter", "multi_tensor", "communication", "other"};

struct NamePart {
  std::string_view part;  ///< lower case
  TraceOpClass op_class;
};

/// The first part that occurs in a kernel's name decides. Names: PyTorch 2.x, cuBLAS, cuDNN,
/// FlashAttention, Transformer Engine, apex, NCCL.
constexpr std::array kNameParts{
    NamePart{"nccl", TraceOpClass::communication},
    NamePart{"flash", TraceOpClass::attention},
    NamePart{"fmha", TraceOpClass::attention},
    NamePart{"attention", TraceOpClass::attention},
    NamePart{"multi_tensor", TraceOpClass::multi_tensor},
    NamePart{"multitensor", TraceOpClass::multi_tensor},
    NamePart{"gemm", TraceOpClass::product},
    NamePart{"nvjet", TraceOpClass::product},
    NamePart{"cutlass", TraceOpClass::product},
    NamePart{"splitk", TraceOpClass::product},
    NamePart{"gemv", TraceOpClass::product},
    NamePart{"winograd", TraceOpClass::product},
    NamePart{"conv", TraceOpClass::product},
    NamePart{"softmax", TraceOpClass::softmax},
    NamePart{"nll_loss", TraceOpClass::softmax},
    NamePart{"cross_entropy", TraceOpClass::softmax},
    NamePart{"layer_norm", TraceOpClass::normalization},
    NamePart{"layernorm", TraceOpClass::normalization},
    NamePart{"rms_norm", TraceOpClass::normalization},
    NamePart{"rmsnorm", TraceOpClass::normalization},
    NamePart{"gammabeta", TraceOpClass::normalization},
    NamePart{"ln_fwd", TraceOpClass::normalization},
    NamePart{"ln_bwd", TraceOpClass::normalization},
    NamePart{"embedding", TraceOpClass::gather_scatter},
    NamePart{"index_elementwise", TraceOpClass::gather_scatter},
    NamePart{"indexselect", TraceOpClass::gather_scatter},
    NamePart{"indexing", TraceOpClass::gather_scatter},
    NamePart{"gather", TraceOpClass::gather_scatter},
    NamePart{"scatter", TraceOpClass::gather_scatter},
    NamePart{"reduce", TraceOpClass::reduction},
    NamePart{"elementwise", TraceOpClass::elementwise},
    NamePart{"catarray", TraceOpClass::elementwise},
    NamePart{"dropout", TraceOpClass::elementwise},
    NamePart{"memcpy", TraceOpClass::elementwise},
    NamePart{"memset", TraceOpClass::elementwise},
    NamePart{"triton_poi", TraceOpClass::elementwise},
    NamePart{"triton_per", TraceOpClass::reduction},
    NamePart{"triton_red", TraceOpClass::reduction},
};

struct Range {
  double begin_us = 0;
  double end_us = 0;
  bool holds(double at_us) const { return at_us >= begin_us && at_us < end_us; }
};

struct Launch {
  std::int64_t thread = 0;
  double at_us = 0;
};

struct GpuEvent {
  double begin_us = 0;
  double end_us = 0;
  TraceOpClass op_class = TraceOpClass::other;
  std::int64_t correlation = -1;
  std::int64_t stream = 0;
  int name = 0;  ///< a number of its own for every name
};

/// Whole steps on the GPU.
struct FoundSteps {
  Range window;
  int count = 1;
  std::string note;
  bool is_all = false;  ///< of the trace
};

/// Keeps of every event what is needed of it.
class EventCollector {
 public:
  void take(const Json& event) {
    if (event_word(event, "ph") != "X") return;
    const std::string category = event_word(event, "cat");
    const double begin = event_number(event, "ts");
    const Range range{begin, begin + event_number(event, "dur")};
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
      take_kernel(event_word(event, "name"), event, range);
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      const std::int64_t id = correlation_of(event);
      if (id >= 0) launches_[id] = {static_cast<std::int64_t>(event_number(event, "tid")), begin};
    } else if (category == "cpu_op" || category == "user_annotation") {
      take_range(event_word(event, "name"), event, range);
    } else if (category == "gpu_user_annotation") {
      take_step(event_word(event, "name"), range, gpu_steps_);
    }
  }

  KinetoTrace trace() {
    if (gpu_.empty()) return {};
    std::ranges::stable_sort(gpu_, {}, &GpuEvent::begin_us);
    const FoundSteps found = find_steps();
    const Range& window = found.window;
    KinetoTrace trace{.steps = found.count,
                      .window = Seconds((window.end_us - window.begin_us) * 1e-6),
                      .note = found.note};
    for (const GpuEvent& event : gpu_) {
      if (!found.is_all && !window.holds(event.begin_us)) continue;
      trace.kernels.push_back({Seconds((event.begin_us - window.begin_us) * 1e-6),
                               Seconds((event.end_us - window.begin_us) * 1e-6), event.op_class,
                               phase_of(event)});
    }
    return trace;
  }

 private:
  static std::int64_t correlation_of(const Json& event) {
    const auto arguments = event.find("args");
    if (arguments == event.end() || !arguments->is_object()) return -1;
    const auto id = arguments->find("correlation");
    return id != arguments->end() && id->is_number_integer() ? id->get<std::int64_t>() : -1;
  }

  void take_range(const std::string& name, const Json& event, const Range& range) {
    take_step(name, range, host_steps_);
    if (name.starts_with("Optimizer.step")) optimizer_.push_back(range);
    if (name.starts_with("autograd::engine::evaluate_function"))
      autograd_threads_.insert(static_cast<std::int64_t>(event_number(event, "tid")));
  }

  /// A step may be marked on several streams.
  static void take_step(const std::string& name, const Range& range,
                        std::map<std::string, Range>& steps) {
    if (!name.starts_with("ProfilerStep")) return;
    Range& step = steps.try_emplace(name, range).first->second;
    step = {std::min(step.begin_us, range.begin_us), std::max(step.end_us, range.end_us)};
  }

  /// As the GPU ran them, where the trace says so: the host runs ahead.
  const std::map<std::string, Range>& steps() const {
    return gpu_steps_.empty() ? host_steps_ : gpu_steps_;
  }

  void take_kernel(const std::string& name, const Json& event, const Range& range) {
    const int number_of_name =
        names_.try_emplace(name, static_cast<int>(names_.size())).first->second;
    gpu_.push_back({range.begin_us, range.end_us, class_of_kernel_name(name), correlation_of(event),
                    static_cast<std::int64_t>(event_number(event, "tid")), number_of_name});
  }

  FoundSteps find_steps() const {
    if (!steps().empty()) return marked_steps();
    if (auto found = steps_between_optimizers()) return *found;
    if (auto found = repeated_steps()) return *found;
    return {
        whole_window(), 1,
        "no ProfilerStep, and no step that repeats: all kernels count as one step, those of the "
        "start among them",
        true};
  }

  FoundSteps marked_steps() const {
    Range window = steps().begin()->second;
    for (const auto& [name, step] : steps()) {
      window.begin_us = std::min(window.begin_us, step.begin_us);
      window.end_us = std::max(window.end_us, step.end_us);
    }
    return {window, static_cast<int>(steps().size()), ""};
  }

  /// From the end of the first optimizer step on the GPU to that of the last.
  std::optional<FoundSteps> steps_between_optimizers() const {
    std::vector<double> ends(optimizer_.size(), -1);
    for (const GpuEvent& event : gpu_) {
      const std::size_t range = optimizer_of(event);
      if (range < ends.size()) ends[range] = std::max(ends[range], event.end_us);
    }
    std::erase(ends, -1);
    std::ranges::sort(ends);
    if (ends.size() < 2) return std::nullopt;
    const int count = static_cast<int>(ends.size()) - 1;
    return FoundSteps{{ends.front(), ends.back()},
                      count,
                      "no ProfilerStep: " + std::to_string(count) +
                          " steps between ends of optimizer steps, the first one left out"};
  }

  /// From the first kernel of a step to that of the last whole one: idle times between are in it.
  std::optional<FoundSteps> repeated_steps() const {
    const std::vector<const GpuEvent*> stream = busiest_stream();
    std::vector<int> names;
    for (const GpuEvent* event : stream) names.push_back(event->name);
    const auto found = repetition_in(names);
    if (!found) return std::nullopt;
    const std::size_t first = stream.size() - found->count * found->length;
    const int count = static_cast<int>(found->count) - 1;
    return FoundSteps{{stream[first]->begin_us, stream[stream.size() - found->length]->begin_us},
                      count,
                      "no ProfilerStep: " + std::to_string(count) + " of " +
                          std::to_string(found->count) + " repetitions of " +
                          std::to_string(found->length) + " kernels count as steps"};
  }

  std::vector<const GpuEvent*> busiest_stream() const {
    std::map<std::int64_t, std::vector<const GpuEvent*>> streams;
    for (const GpuEvent& event : gpu_) streams[event.stream].push_back(&event);
    return std::ranges::max_element(streams, {},
                                    [](const auto& stream) { return stream.second.size(); })
        ->second;
  }

  Range whole_window() const {
    Range window{gpu_.front().begin_us, 0};
    for (const GpuEvent& event : gpu_) window.end_us = std::max(window.end_us, event.end_us);
    return window;
  }

  /// Position of the optimizer step that launched a kernel; their number where none did.
  std::size_t optimizer_of(const GpuEvent& event) const {
    const auto launch = launches_.find(event.correlation);
    if (launch == launches_.end()) return optimizer_.size();
    const auto found = std::ranges::find_if(
        optimizer_, [&](const Range& range) { return range.holds(launch->second.at_us); });
    return static_cast<std::size_t>(found - optimizer_.begin());
  }

  TracePhase phase_of(const GpuEvent& event) const {
    const auto launch = launches_.find(event.correlation);
    if (launch == launches_.end()) return TracePhase::forward;
    if (optimizer_of(event) < optimizer_.size()) return TracePhase::optimizer;
    return autograd_threads_.contains(launch->second.thread) ? TracePhase::backward
                                                             : TracePhase::forward;
  }

  std::vector<GpuEvent> gpu_;
  std::map<std::string, int> names_;
  std::map<std::int64_t, Launch> launches_;
  std::map<std::string, Range> gpu_steps_;  ///< by name
  std::map<std::string, Range> host_steps_;
  std::vector<Range> optimizer_;
  std::set<std::int64_t> autograd_threads_;
};

}  // namespace

std::string_view label_of(TraceOpClass op_class) {
  return kTraceOpLabels[static_cast<std::size_t>(op_class)];
}

TraceOpClass class_of_kernel_name(std::string_view name) {
  const std::string text = lower_case(name);
  for (const NamePart& entry : kNameParts) {
    if (text.find(entry.part) != std::string::npos) return entry.op_class;
  }
  return TraceOpClass::other;
}

KinetoTrace read_kineto(const std::filesystem::path& path) {
  EventCollector events;
  for_each_trace_event(path, [&](const Json& event) { events.take(event); });
  KinetoTrace trace = events.trace();
  if (trace.kernels.empty()) {
    throw InputError({path.string(), "holds no GPU kernel",
                      "give a trace of torch.profiler with ProfilerActivity.CUDA"});
  }
  return trace;
}

}  // namespace tessera
