#include "lab/validate/studies/tensor_study_text.h"

#include <cmath>
#include <vector>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

std::string parameters_text(const TensorWeights& weights) {
  const TensorParameters<double>& p = weights.shared;
  std::string text = text_line("shared parameters, fitted to %lld rows of %s (FNV-1a %016llx)",
                               static_cast<long long>(weights.rows), weights.file.c_str(),
                               static_cast<unsigned long long>(weights.fnv1a));
  text += text_line(
      "  prologue %.0f in k, split %.2f us, norm %.2f; L2 centre %.2f, slope %.2f, gain %.2f",
      p.prologue, p.split_seconds * 1e6, p.norm, p.l2_centre, p.l2_slope, p.l2_gain);
  text += "  tile penalties (log)";
  for (int i = 0; i < kTensorTileCount; ++i)
    text += formatted(" %dx%d %.3f", kTensorTiles[i].m, kTensorTiles[i].n, p.penalty[i]);
  return text + "\n\n";
}

std::string effects_text(const TensorWeights& weights) {
  std::string text =
      text_line("%-16s %8s %8s %8s %11s %13s %12s %13s", "GPU", "compute", "memory", "cap",
                "cap/decade", "spread >=50us", "spread <50us", "between stacks");
  for (const TensorGpuWeights& gpu : weights.gpus)
    text +=
        text_line("%-16s %8.3f %8.3f %8.3f %11.3f %13.3f %12.3f %13.3f", gpu.gpu.c_str(),
                  gpu.effect.compute, gpu.effect.memory, gpu.effect.cap, gpu.effect.cap_per_decade,
                  gpu.long_spread, gpu.short_spread, gpu.stack_spread);
  text += text_line("\n%-16s %-12s %-5s %8s %12s %10s %8s %8s", "GPU", "stack", "dtype", "rows",
                    "whole waves", "launch us", "compute", "memory");
  for (const TensorGpuWeights& gpu : weights.gpus)
    for (const TensorStackWeights& stack : gpu.stacks)
      text +=
          text_line("%-16s %-12s %-5s %8lld %12.2f %10.2f %8.3f %8.3f", gpu.gpu.c_str(),
                    stack.name.c_str(), std::string(name_of(stack.precision)).c_str(),
                    static_cast<long long>(stack.rows), stack.effect.quantisation,
                    stack.effect.launch_seconds * 1e6, stack.effect.compute, stack.effect.memory);
  return text + "\n";
}

/// Mean over all rows of a regime, whatever the GPU.
std::string pooled_text(const std::vector<TensorErrorRow>& rows) {
  std::string text;
  for (const std::string regime : {">= 50 us", "< 50 us"}) {
    double sum = 0;
    std::int64_t n = 0;
    for (const TensorErrorRow& row : rows) {
      if (!row.stack.empty() || row.regime != regime) continue;
      sum += row.form.mean_pct * static_cast<double>(row.form.n);
      n += row.form.n;
    }
    if (n > 0)
      text += text_line("%-29s %-26s %6lld %7.2f", "pooled over GPUs", regime.c_str(),
                        static_cast<long long>(n), sum / static_cast<double>(n));
  }
  return text;
}

std::string errors_text(const char* title, const std::vector<TensorErrorRow>& rows) {
  std::string text = text_line("%s", title);
  text += text_line("%-16s %-12s %-26s %6s %6s %7s %14s %17s %15s", "GPU", "stack", "rows", "n",
                    "form", "median", "stack unknown", "roofline * const", "  ... + 3 us");
  for (const TensorErrorRow& row : rows)
    text += text_line("%-16s %-12s %-26s %6lld %6.1f %7.1f %14.1f %17.1f %15.1f", row.gpu.c_str(),
                      row.stack.empty() ? "all" : row.stack.c_str(), row.regime.c_str(),
                      static_cast<long long>(row.form.n), row.form.mean_pct, row.form.median_pct,
                      row.any_stack.mean_pct, row.roofline.mean_pct, row.with_a_floor.mean_pct);
  return text + pooled_text(rows) + "\n";
}

std::string sums_text(const std::vector<TensorSumError>& sums) {
  std::string text =
      "sums of eight kernels of one library, m, n, k >= 1024, 50 us and longer, equal shares of "
      "the "
      "time, shapes of the first table\n";
  text += text_line("%-16s %6s %6s %6s", "GPU", "n", "mean", "p90");
  for (const TensorSumError& sum : sums)
    text += text_line("%-16s %6lld %6.1f %6.1f", sum.gpu.c_str(), static_cast<long long>(sum.sums),
                      sum.mean_pct, sum.p90_pct);
  return text + "\n";
}

std::string transfers_text(const std::vector<TensorTransferRow>& rows) {
  std::string text =
      "fitted to one GPU alone, scored on a fifth of the shapes of the other (library unknown)\n";
  text += text_line("%-16s %-16s %-40s %8s %8s %8s %8s %11s", "from", "to", "method", ">= 50us",
                    "m > 1024", "< 50us", "bias", "worst draw");
  for (const TensorTransferRow& row : rows) {
    text += formatted("%-16s %-16s %-40s %8.1f %8.1f %8.1f %8.1f", row.source.c_str(),
                      row.target.c_str(), row.method.c_str(), row.longer.mean_pct,
                      row.large.mean_pct, row.shorter.mean_pct, row.bias_pct);
    text += row.worst_pct > 0 ? text_line(" %11.1f", row.worst_pct) : text_line(" %11s", "-");
  }
  return text;
}

std::string calls_text(const TensorLoadCalls& calls) {
  if (calls.n == 0) return formatted(" %7s %7s %7s", "-", "-", "-");
  return formatted(" %7lld %7.0f %+7.1f", static_cast<long long>(calls.n), calls.rate * 1e-12,
                   calls.error_pct);
}

std::string loads_text(const std::vector<TensorLoad>& loads) {
  std::string text =
      "\nproducts with m, n, k >= 1024 by duration (n, median TFLOP/s), and what a step is told of "
      "them (under load, library unknown: median of predicted / measured - 1)\n";
  text += text_line("%-16s %-12s %23s %23s %23s", "GPU", "stack", "1 to 10 ms", "10 to 50 ms",
                    "50 ms and more");
  for (const TensorLoad& load : loads) {
    text += formatted("%-16s %-12s", load.gpu.c_str(), load.stack.c_str());
    for (const TensorLoadCalls& calls : load.calls) text += calls_text(calls);
    text += "\n";
  }
  return text;
}

std::string coverage_text(const std::vector<TensorCoverage>& rows) {
  std::string text =
      "\nkernels of held-out shapes inside their 80 % interval, library unknown [%]\n";
  text += text_line("%-16s %-26s %6s %6s %8s %20s", "GPU", "weights", "n", "all", ">= 50us",
                    "half-width (log)");
  for (const TensorCoverage& row : rows)
    text += text_line("%-16s %-26s %6lld %6.1f %8.1f %20.3f", row.gpu.c_str(),
                      row.measured ? "without these shapes" : "without this GPU",
                      static_cast<long long>(row.n), row.inside_pct, row.long_inside_pct,
                      row.mean_half_width);
  return text;
}

}  // namespace

std::string tensor_study_text(const TensorWeights& weights, const TensorStudy& study) {
  return "half-precision products on tensor cores; errors are |predicted / measured - 1| in %\n"
         "about 40 variants of the form were scored on the rows of the first table: see "
         "half.md\n\n" +
         parameters_text(weights) + effects_text(weights) +
         errors_text("a fifth of all (m, n, k) kept from the fit, by hash", study.shapes) +
         errors_text("a fifth of all (n, k) kept from the fit, by hash", study.matrices) +
         sums_text(study.sums) + transfers_text(study.transfers) + loads_text(study.loads) +
         coverage_text(study.coverage);
}

}  // namespace tessera
