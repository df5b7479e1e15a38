#include "lab/fit/studies/half_memory_study.h"

#include "hw/units/formatted.h"
#include "lab/fit/attention/attention_errors.h"

namespace tessera {
namespace {

constexpr double kLong = 50e-6;  // [s]: what targets speak of

HalfMemoryParameters<double> parameters_of(const HalfMemoryWeights& weights, std::size_t op) {
  return HalfMemoryParameters<double>::from_unconstrained(
      std::span<const double>(weights.classes[op]));
}

std::string parameter_table(const HalfMemoryWeights& weights) {
  std::string text =
      "\nParameters: share of the bandwidth, fixed time, speed of an L2 hit, traffic / L2 at which "
      "half misses, slope of that,\n"
      "bytes that a row costs beyond its traffic, spread\n" +
      formatted("%-12s %6s %7s %6s %6s %6s %9s %7s\n", "", "eff", "t0 [us]", "gain", "centre",
                "slope", "row [B]", "sigma");
  for (std::size_t op = 0; op < kHalfMemoryOps; ++op) {
    const auto p = parameters_of(weights, op);
    text += formatted("%-12s %6.2f %7.1f %6.2f %6.2f %6.2f %9.0f %7.3f\n",
                      std::string(name_of(static_cast<HalfMemoryOp>(op))).c_str(), p.efficiency,
                      p.launch * 1e6, p.gain, std::exp(p.centre), p.slope, p.row_bytes,
                      weights.spread[op]);
  }
  return text;
}

struct Errors {
  ErrorGroups by_op, by_width;
};

Errors errors_of(const HalfMemoryTable& table, const HalfMemoryGpu& gpu,
                 const HalfMemoryWeights& weights) {
  Errors errors;
  for (const HalfMemoryMeasurement& row : table.rows) {
    if (!row.held_out) continue;
    const auto p = parameters_of(weights, static_cast<std::size_t>(row.op));
    const double time = row.calls * half_memory_seconds(row.shape, gpu, p);
    std::string name(name_of(row.op));
    if (row.calls == 2) name += " twice";
    const bool is_long = row.seconds >= kLong;
    errors.by_op.add(name + (is_long ? " >= 50 us" : "  < 50 us"), time, row.seconds);
    if (is_long && row.calls == 1)
      errors.by_width.add(name + formatted(" width %5d", static_cast<int>(row.width)), time,
                          row.seconds);
  }
  return errors;
}

std::string ablation_table(const HalfMemoryTable& table, const GpuLookup& lookup,
                           const HalfMemoryGpu& gpu) {
  std::string text =
      "\nAblations, each refitted: held-out mean error [%], >= 50 us, then < 50 us\n";
  struct Variant {
    const char* name;
    HalfMemoryForm form;
  };
  for (const Variant variant : {Variant{"full form", {}}, Variant{"no L2", {.cache = false}},
                                Variant{"no cost per row", {.rows = false}}}) {
    const Errors errors = errors_of(table, gpu, train_half_memory(table, lookup, variant.form));
    text += formatted("%-18s", variant.name);
    for (std::size_t op = 0; op < kHalfMemoryOps; ++op) {
      const std::string name(name_of(static_cast<HalfMemoryOp>(op)));
      text += formatted("  %s %.1f, %.1f", name.c_str(), errors.by_op.mean(name + " >= 50 us"),
                        errors.by_op.mean(name + "  < 50 us"));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string half_memory_study(const HalfMemoryTable& table, const GpuLookup& lookup,
                              const HalfMemoryWeights& weights) {
  const HalfMemoryGpu gpu = half_memory_gpu(lookup(weights.gpu));
  const Errors errors = errors_of(table, gpu, weights);
  return formatted("Memory-bound kernels in 16 bits on %s: %zu rows of %s, %lld fitted\n",
                   weights.gpu.c_str(), table.rows.size(), table.file.c_str(),
                   static_cast<long long>(weights.data.rows)) +
         parameter_table(weights) +
         "\nHeld-out shapes (a fifth, by hash; add twice: all), error [%]\n" +
         errors.by_op.table() + "\nThe same by elements per row, 50 us and longer\n" +
         errors.by_width.table() + ablation_table(table, lookup, gpu);
}

}  // namespace tessera
