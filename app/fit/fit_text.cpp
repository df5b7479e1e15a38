#include <string_view>

#include "app/fit/fit_answer.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

double gibibytes(Bytes bytes) {
  return static_cast<double>(bytes.value()) / static_cast<double>(std::int64_t{1} << 30);
}

std::string sizes_text(const StepOptions& step) {
  const ParallelLayout& layout = step.layout;
  std::string text;
  const auto add = [&](const char* name, int size) {
    if (size > 1) text += std::string(name) + " " + std::to_string(size) + " ";
  };
  add("tp", layout.tensor);
  add("pp", layout.pipeline);
  add("dp", layout.data);
  add("cp", layout.context);
  add("ep", layout.expert);
  if (step.data_parallel.sharding != Sharding::none)
    text += "ZeRO-" + std::to_string(static_cast<int>(step.data_parallel.sharding)) + " ";
  text += "micro-batch " + std::to_string(step.micro_batch);
  if (step.sequence_length > 0) text += " x " + std::to_string(step.sequence_length) + " tokens";
  if (step.recompute != Recompute::none)
    text += step.recompute == Recompute::full ? ", recompute full" : ", recompute selective";
  return text;
}

std::string title_text(const FitAnswer& answer) {
  return answer.model + " on " + std::to_string(answer.gpus) + " x " + answer.gpu + " (" +
         answer.cluster + "), " + answer.framework + " " + answer.precision + ": " +
         sizes_text(answer.options) + "\n";
}

/// "does not fit: 96.1 GiB of 80.0, margin -16.1 GiB (80 %: -22.8 to -9.6)".
std::string verdict_text(const FitAnswer& answer) {
  const FitStep& step = answer.step;
  const Bytes needed = step.device.total();
  std::string text =
      text_of(step.verdict) +
      formatted(": %.2f GiB of %.2f, margin %+.2f GiB (80 %%: %+.2f to %+.2f)\n", gibibytes(needed),
                gibibytes(step.capacity), gibibytes(step.margin()),
                gibibytes(step.capacity - answer.spread.high_of(needed)),
                gibibytes(step.capacity - answer.spread.low_of(needed)));
  text += "interval: " + answer.spread.basis + "\n";
  if (!step.refused.empty()) text += step.refused + "\n";
  return text;
}

std::string parts_text(const FitAnswer& answer) {
  const DeviceMemory& device = answer.step.device;
  std::string text = "\nwhat holds it, on the fullest GPU (stage " +
                     std::to_string(answer.need.stage) + ")      GiB\n";
  const auto add = [&](std::string_view name, Bytes bytes) {
    if (bytes >= 5_MiB)  // what rounds to 0.00
      text += formatted("  %-40s %10.2f\n", std::string(name).c_str(), gibibytes(bytes));
  };
  for (const FitPart& part : parts_of(answer)) add(part.name, part.bytes);
  add("all", device.total());
  return text;
}

std::string size_text(const char* name, const LargestSize& size) {
  std::string text = formatted("%-20s %lld", name, static_cast<long long>(size.fits));
  if (size.sure != size.fits)
    text += formatted(" (surely %lld)", static_cast<long long>(size.sure));
  if (!size.limit.empty()) text += ", where " + size.limit + " ends it";
  return text + "\n";
}

std::string settings_text(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& each : settings) text += " --set " + each;
  return text;
}

std::string changes_text(const FitAnswer& answer) {
  if (answer.step.verdict == FitVerdict::fits) return "";
  if (answer.changes.empty())
    return "\nno change that is simulated makes it fit: more or larger GPUs\n";
  std::string text = formatted("\nwhat makes it fit, fastest first\n%12s %12s %-17s %s\n",
                               "step time", "margin GiB", "verdict", "change");
  for (const ChangedStep& changed : answer.changes)
    text += formatted("%12s %+12.2f %-17s ", to_short_text(*changed.step.time).c_str(),
                      gibibytes(changed.step.margin()), text_of(changed.step.verdict).c_str()) +
            changed.change.name +
            (changed.gpus == answer.gpus ? "" : " on " + std::to_string(changed.gpus) + " GPUs") +
            "\n" + std::string(43, ' ') + settings_text(changed.settings) + "\n";
  return text;
}

std::string list_text(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = std::string("\n") + title + "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string refused_text(const FitAnswer& answer) {
  std::vector<std::string> lines;
  for (const ChangedStep& changed : answer.refused)
    lines.push_back(changed.change.name + ": " +
                    changed.step.refused.substr(0, changed.step.refused.find('\n')));
  return list_text("not possible here", lines);
}

}  // namespace

std::string fit_text(const FitAnswer& answer) {
  std::string text = title_text(answer);
  text += verdict_text(answer);
  if (answer.step.time) text += "step time " + to_short_text(*answer.step.time) + "\n";
  text += parts_text(answer);
  text += "\n" + size_text("largest micro-batch", answer.micro_batch);
  if (answer.sequence) text += size_text("longest sequence", *answer.sequence);
  text += changes_text(answer);
  text += refused_text(answer);
  if (answer.step.verdict != FitVerdict::fits)
    text += list_text("not simulated", answer.not_simulated);
  text += list_text("approximate", answer.approximations);
  text += list_text("assumed", answer.assumed);
  return text;
}

}  // namespace tessera
