#include "sim/report/text/table_head.h"

#include <vector>

#include "sim/report/text/table_cells.h"

namespace tessera {
namespace {

std::string note_lines(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "  note: " + note + "\n";
  return text;
}

/// What the kernel times rest on, in one line, and with notes what of it was never measured, a line
/// each; the whole reason is in the JSON.
std::string basis_lines(const StepReport& report, const Provenance& provenance,
                        const TextStyle& style) {
  const std::string& mode = provenance.predictor_mode;
  std::string text = mode == "zero-shot"
                         ? "zero-shot: nothing was measured on " + report.gpu
                         : mode + " for " + report.gpu + ": " + provenance.predictor_effect;
  const std::vector<std::string>& notes = provenance.predictor_notes;
  if (style.notes) return text + "\n" + note_lines(notes);
  return text + (notes.empty() ? "" : "; " + std::to_string(notes.size()) + " more: --notes") +
         "\n";
}

std::string link_lines(const Provenance& provenance) {
  std::string text;
  for (const std::string& note : provenance.link_notes) text += wrapped("  links:", note);
  return text;
}

/// ", context 8" for the dimensions that most jobs have one of.
std::string other_dimensions(const ParallelLayout& layout) {
  std::string text;
  const auto add = [&](const char* name, int size) {
    if (size > 1) text += std::string(", ") + name + " " + std::to_string(size);
  };
  add("context", layout.context);
  add("expert", layout.expert);
  if (layout.cuts_experts_apart())
    text += ", expert tensor " + std::to_string(layout.expert_parts());
  add("virtual stages", layout.virtual_stages);
  return text;
}

std::string approximation_lines(const Provenance& provenance) {
  std::string text;
  for (const std::string& line : provenance.approximations) text += "approximate: " + line + "\n";
  return text;
}

/// "46.7 billion parameters, 12.9 billion active"; empty where they are not known.
std::string parameters_text(const ParameterCounts& parameters) {
  if (parameters.total == 0) return "";
  return ", " + to_text(parameters);
}

}  // namespace

bool is_replayed(const Provenance& provenance) {
  return provenance.mode == "replayed";
}

std::string header_line(const StepReport& report, const Provenance& provenance,
                        const TextStyle& style) {
  const ParallelLayout& layout = report.layout;
  if (is_replayed(provenance))
    return provenance.scenario + ": replayed step of " + provenance.model + " on " +
           std::to_string(report.gpus()) + " x " + report.gpu + "\ntessera " +
           provenance.tessera_version + "; " + provenance.predictor_effect + "\n" +
           note_lines(provenance.notes) + "\n";
  return provenance.scenario + ": " + provenance.mode + " step of " + provenance.model + " on " +
         std::to_string(report.gpus()) + " x " + report.gpu + "\n" + "tensor " +
         std::to_string(layout.tensor) + ", pipeline " + std::to_string(layout.pipeline) +
         ", data " + std::to_string(layout.data) + other_dimensions(layout) + ", " +
         counted(report.micro_batches, "micro-batch") + "; predictor " + provenance.predictor +
         ", tessera " + provenance.tessera_version + "\n" + "framework " + provenance.framework +
         ", " + std::string(name_of(report.precision)) +
         (provenance.recompute == "none" ? "" : ", recompute " + provenance.recompute) +
         parameters_text(provenance.parameters) + "\n" + note_lines(provenance.notes) +
         basis_lines(report, provenance, style) + link_lines(provenance) +
         approximation_lines(provenance) + "\n";
}

}  // namespace tessera
