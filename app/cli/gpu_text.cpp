#include "app/cli/gpu_text.h"

#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

#include "configs/schema/mirror.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/config/fields/explain.h"

namespace tessera {
namespace {

/// `value` / `unit` with as few digits as tell it; a dash for 0.
std::string cell(double value, double unit = 1) {
  if (value == 0) return "-";
  return formatted("%.4g", value / unit);
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

/// A column of the table of GPUs: what stands above, its unit, and the cell of a GPU.
struct GpuColumn {
  const char* head;
  const char* unit;
  std::function<std::string(const GpuSpec&)> cell;
};

std::vector<GpuColumn> gpu_columns() {
  const auto peak = [](const char* head, FlopsPerSecond GpuSpec::*rate,
                       const char* unit = "TFLOPS") {
    return GpuColumn{head, unit,
                     [rate](const GpuSpec& gpu) { return cell((gpu.*rate).value(), 1e12); }};
  };
  return {
      {"memory", "GiB",
       [](const GpuSpec& g) { return cell(static_cast<double>(g.memory.value()), 0x1p30); }},
      {"bandwidth", "GB/s", [](const GpuSpec& g) { return cell(g.memory_bandwidth.value(), 1e9); }},
      peak("fp32", &GpuSpec::fp32),
      peak("fp32 mx", &GpuSpec::fp32_matrix),
      peak("tf32", &GpuSpec::tf32),
      peak("bf16", &GpuSpec::bf16),
      peak("fp16", &GpuSpec::fp16),
      peak("fp8", &GpuSpec::fp8),
      peak("int8", &GpuSpec::int8, "TOPS"),
      peak("fp4", &GpuSpec::fp4),
      {"power", "W", [](const GpuSpec& g) { return cell(g.tdp.value()); }},
      {"clock", "MHz", [](const GpuSpec& g) { return cell(g.boost_clock.value(), 1e6); }},
      {"SMs", "", [](const GpuSpec& g) { return cell(g.sm_count); }},
      {"USD/h", "", [](const GpuSpec& g) { return cell(g.price); }},
      {"year", "", [](const GpuSpec& g) { return cell(g.release_year); }},
      {"version", "", [](const GpuSpec& g) { return g.compute_capability; }},
      {"die", "", [](const GpuSpec& g) { return or_dash(g.die); }},
      {"process", "nm", [](const GpuSpec& g) { return cell(g.process); }},
      {"memory", "",
       [](const GpuSpec& g) { return or_dash(word_of("memory_kind", g.memory_kind)); }},
      {"copies", "", [](const GpuSpec& g) { return or_dash(word_of("async_copy", g.async_copy)); }},
      {"form", "", [](const GpuSpec& g) { return or_dash(word_of("form_factor", g.form_factor)); }},
      {"L2", "MiB",
       [](const GpuSpec& g) { return cell(static_cast<double>(g.l2.value()), 0x1p20); }}};
}

/// Head, unit and the cells of all GPUs, padded to one width.
std::vector<std::string> padded_cells(const GpuColumn& column, std::span<const GpuSpec> gpus) {
  std::vector<std::string> cells{column.head, column.unit};
  for (const GpuSpec& gpu : gpus) cells.push_back(column.cell(gpu));
  std::size_t width = 0;
  for (const std::string& text : cells) width = std::max(width, text.size());
  for (std::string& text : cells) text.insert(0, width + 1 - text.size(), ' ');
  return cells;
}

/// The ids of the GPUs below two lines of head.
std::vector<std::string> gpu_ids(std::span<const GpuSpec> gpus) {
  std::vector<std::string> lines{"GPU", ""};
  for (const GpuSpec& gpu : gpus) lines.push_back(gpu.id);
  std::size_t width = 0;
  for (const std::string& text : lines) width = std::max(width, text.size());
  for (std::string& text : lines) text.resize(width, ' ');
  return lines;
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

std::string gpu_table(std::span<const GpuSpec> gpus, std::size_t width) {
  const std::vector<std::string> ids = gpu_ids(gpus);
  std::vector<std::string> lines = ids;
  std::string text;
  const auto end_block = [&] {
    for (const std::string& line : lines)
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    lines = ids;
  };
  for (const GpuColumn& column : gpu_columns()) {
    const std::vector<std::string> cells = padded_cells(column, gpus);
    if (lines.front().size() + cells.front().size() > width) {
      end_block();
      text += "\n";
    }
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i] += cells[i];
  }
  end_block();
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
