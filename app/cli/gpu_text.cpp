#include "app/cli/gpu_text.h"

#include <cstdio>
#include <type_traits>

#include "hw/units/text.h"
#include "sim/config/fields/explain.h"
#include "sim/config/fields/mirror_cluster.h"

namespace tessera {
namespace {

constexpr const char* kTableRow =
    "%-22s %8s %9s %7s %7s %7s %7s %7s %7s %7s %7s %7s %8s %5s %9s %-13s %7s %6s %-11s %-9s %7s "
    "%6s %7s\n";

/// `value` / `unit` with as few digits as tell it; a dash for 0.
std::string cell(double value, double unit = 1) {
  if (value == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value / unit);
  return text;
}

/// The schema's word for the value of an enumeration; empty where nobody stated it.
template <class Enum>
std::string word_of(const std::string& field, Enum value) {
  const int number = static_cast<int>(value);
  const bool kind = std::is_same_v<Enum, Architecture>;  // of which each is a statement
  return number == 0 && !kind ? "" : value_word("cluster.node.gpu." + field, number);
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

std::string table_line(const GpuSpec& gpu) {
  const auto peak = [](FlopsPerSecond rate) { return cell(rate.value(), 1e12); };
  char line[400];
  std::snprintf(line, sizeof line, kTableRow, gpu.id.c_str(),
                cell(static_cast<double>(gpu.memory.value()), 0x1p30).c_str(),
                cell(gpu.memory_bandwidth.value(), 1e9).c_str(), peak(gpu.fp32).c_str(),
                peak(gpu.fp32_matrix).c_str(), peak(gpu.tf32).c_str(), peak(gpu.bf16).c_str(),
                peak(gpu.fp16).c_str(), peak(gpu.fp8).c_str(), peak(gpu.int8).c_str(),
                peak(gpu.fp4).c_str(), cell(gpu.tdp.value()).c_str(),
                cell(gpu.boost_clock.value(), 1e6).c_str(), cell(gpu.sm_count).c_str(),
                gpu.compute_capability.c_str(), or_dash(gpu.die).c_str(), cell(gpu.process).c_str(),
                or_dash(word_of("memory_kind", gpu.memory_kind)).c_str(),
                or_dash(word_of("async_copy", gpu.async_copy)).c_str(),
                or_dash(word_of("form_factor", gpu.form_factor)).c_str(),
                cell(static_cast<double>(gpu.l2.value()), 0x1p20).c_str(),
                cell(gpu.release_year).c_str(), cell(gpu.price).c_str());
  return line;
}

/// Text of a figure; empty where it is not stated, and for the id and the list of sources.
template <class T>
std::string value_text(const std::string& field, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return word_of(field, value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value == 0 ? "" : cell(static_cast<double>(value));
  } else if constexpr (requires { value.value(); }) {
    return value.value() == 0 ? "" : to_text(value);
  } else {
    return "";
  }
}

std::string source_of(const GpuSpec& gpu, const std::string& figure) {
  for (const FigureSource& entry : gpu.sources)
    for (const std::string& name : entry.figures)
      if (name == figure) return (entry.confirmed ? "" : "not confirmed: ") + entry.source;
  return "";
}

/// "BF16 tensor-core peak": what the schema says of a field.
std::string meaning_of(const std::string& field) {
  const std::string text = explain("cluster.node.gpu." + field);
  const std::string label = "meaning: ";
  const std::size_t begin = text.find(label);
  if (begin == std::string::npos) return "";
  return text.substr(begin + label.size(), text.find('\n', begin) - begin - label.size());
}

}  // namespace

std::string gpu_table(std::span<const GpuSpec> gpus) {
  char head[400];
  std::snprintf(head, sizeof head, kTableRow, "GPU", "memory", "bandwidth", "fp32", "fp32 mx",
                "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "power", "clock", "SMs", "version",
                "die", "process", "memory", "copies", "form", "L2", "year", "USD/h");
  std::string text = head;
  std::snprintf(head, sizeof head, kTableRow, "", "GiB", "GB/s", "TFLOPS", "TFLOPS", "TFLOPS",
                "TFLOPS", "TFLOPS", "TFLOPS", "TOPS", "TFLOPS", "W", "MHz", "", "", "", "nm", "",
                "", "", "MiB", "", "");
  text += head;
  for (const GpuSpec& gpu : gpus) text += table_line(gpu);
  return text;
}

std::string gpu_facts(const GpuSpec& gpu) {
  std::string text = "GPU " + gpu.id + "\n";
  mirror(gpu, [&](const std::string& name, const auto& value) {
    const std::string shown = value_text(name, value);
    if (shown.empty() || name == "id") return;
    text += "  " + name + ": " + shown + "\n    " + meaning_of(name) + "\n";
    if (const std::string source = source_of(gpu, name); !source.empty())
      text += "    source: " + source + "\n";
  });
  return text;
}

}  // namespace tessera
