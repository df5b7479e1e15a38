#include "sim/formats/kineto.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/formats/input_file.h"

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

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return out;
}

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
};

double number(const Json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end()) return 0;
  if (found->is_number()) return found->get<double>();
  return 0;
}

std::string word(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Keeps of every event what is needed of it.
class EventCollector {
 public:
  void take(const Json& event) {
    if (word(event, "ph") != "X") return;
    const std::string category = word(event, "cat");
    const double begin = number(event, "ts");
    const Range range{begin, begin + number(event, "dur")};
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
      gpu_.push_back({range.begin_us, range.end_us, class_of_kernel_name(word(event, "name")),
                      correlation_of(event)});
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      const std::int64_t id = correlation_of(event);
      if (id >= 0) launches_[id] = {static_cast<std::int64_t>(number(event, "tid")), begin};
    } else if (category == "cpu_op" || category == "user_annotation") {
      take_range(word(event, "name"), event, range);
    } else if (category == "gpu_user_annotation") {
      take_step(word(event, "name"), range, gpu_steps_);
    }
  }

  KinetoTrace trace() {
    if (gpu_.empty()) return {};
    std::ranges::stable_sort(gpu_, {}, &GpuEvent::begin_us);
    const Range window = whole_window();
    KinetoTrace trace{.steps = std::max(1, static_cast<int>(steps().size())),
                      .window = Seconds((window.end_us - window.begin_us) * 1e-6)};
    for (const GpuEvent& event : gpu_) {
      if (!steps().empty() && !window.holds(event.begin_us)) continue;
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
      autograd_threads_.insert(static_cast<std::int64_t>(number(event, "tid")));
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

  Range whole_window() const {
    if (steps().empty()) {
      Range window{gpu_.front().begin_us, 0};
      for (const GpuEvent& event : gpu_) window.end_us = std::max(window.end_us, event.end_us);
      return window;
    }
    Range window = steps().begin()->second;
    for (const auto& [name, step] : steps()) {
      window.begin_us = std::min(window.begin_us, step.begin_us);
      window.end_us = std::max(window.end_us, step.end_us);
    }
    return window;
  }

  TracePhase phase_of(const GpuEvent& event) const {
    const auto launch = launches_.find(event.correlation);
    if (launch == launches_.end()) return TracePhase::forward;
    const bool in_optimizer = std::ranges::any_of(
        optimizer_, [&](const Range& range) { return range.holds(launch->second.at_us); });
    if (in_optimizer) return TracePhase::optimizer;
    return autograd_threads_.contains(launch->second.thread) ? TracePhase::backward
                                                             : TracePhase::forward;
  }

  std::vector<GpuEvent> gpu_;
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
  const std::string text = lower(name);
  for (const NamePart& entry : kNameParts) {
    if (text.find(entry.part) != std::string::npos) return entry.op_class;
  }
  return TraceOpClass::other;
}

KinetoTrace read_kineto(const std::filesystem::path& path) {
  const auto stream = open_input_file(path);
  EventCollector events;
  // Events leave the document as soon as they are read.
  const auto on_part = [&](int depth, Json::parse_event_t part, Json& parsed) {
    if (part != Json::parse_event_t::object_end || depth != 2 || !parsed.contains("ph"))
      return true;
    events.take(parsed);
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
  KinetoTrace trace = events.trace();
  if (trace.kernels.empty()) {
    throw InputError({path.string(), "holds no GPU kernel",
                      "give a trace of torch.profiler with ProfilerActivity.CUDA"});
  }
  return trace;
}

}  // namespace tessera
