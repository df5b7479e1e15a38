#include "lab/fit/tensor/tensor_rows.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "predictor/measured/measurements.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxProblems = 20;
constexpr std::uint64_t kHoldOutOneIn = 5;

/// "path:line" of a row that refers into the text of its file.
std::string place(const MeasurementFile& file, const KernelMeasurement& row) {
  const auto before = row.line.data() - file.text->data();
  const auto lines = std::count(file.text->begin(), file.text->begin() + before, '\n') + 1;
  return file.path.string() + ":" + std::to_string(lines);
}

class Collector {
 public:
  Collector(const MeasurementFile& file, const GpuLookup& lookup) : file_(file) {
    for (const std::string& id : file.gpus) data_.gpus.push_back(lookup(id));
  }

  TensorData collect() {
    data_.file = file_.path.filename().string();
    data_.fnv1a = fnv1a(*file_.text);
    data_.samples.reserve(file_.rows.size());
    for (const KernelMeasurement& row : file_.rows) {
      add(row);
      if (problems_.size() >= kMaxProblems) break;
    }
    if (!problems_.empty()) throw InputError(std::move(problems_));
    if (data_.samples.empty())
      throw InputError({file_.path.string(), "holds no row", "give measured products"});
    return std::move(data_);
  }

 private:
  void problem(const KernelMeasurement& row, std::string what, std::string hint) {
    problems_.push_back({place(file_, row), std::move(what), std::move(hint)});
  }

  void add(const KernelMeasurement& row) {
    if (row.precision != Precision::bf16 && row.precision != Precision::fp16)
      return problem(row, "dtype = '" + std::string(name_of(row.precision)) + "' has no model here",
                     "bf16 or fp16");
    if (row.stack.empty())
      return problem(row, "names no stack", "the library that ran it, in column stack");
    if (row.latency_us <= 0)
      return problem(row, "states no duration", "microseconds above 0, in column latency_us");
    const Kernel kernel = kernel_of(row);
    TensorShape shape = tensor_shape(kernel);
    shape.bytes = 2 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);  // no bias
    data_.samples.push_back(
        {.stack = stack_of(row), .shape = shape, .seconds = row.latency_us * 1e-6});
  }

  int stack_of(const KernelMeasurement& row) {
    const int gpu = row.gpu;
    const auto found = std::ranges::find_if(data_.stacks, [&](const TensorStack& stack) {
      return stack.gpu == gpu && stack.name == row.stack && stack.precision == row.precision;
    });
    const auto number = static_cast<int>(found - data_.stacks.begin());
    if (found == data_.stacks.end())
      data_.stacks.push_back({.name = std::string(row.stack),
                              .gpu = gpu,
                              .precision = row.precision,
                              .traits = tensor_traits(data_.gpus[gpu], row.precision)});
    return number;
  }

  const MeasurementFile& file_;
  TensorData data_;
  std::vector<Problem> problems_;
};

std::string hashed_text(const TensorShape& shape, bool with_m) {
  const auto whole = [](double size) { return std::to_string(static_cast<std::int64_t>(size)); };
  const std::string matrix = whole(shape.n) + "," + whole(shape.k);
  return with_m ? whole(shape.m) + "," + matrix : matrix;
}

}  // namespace

TensorData read_tensor_rows(const std::filesystem::path& path, const GpuLookup& lookup) {
  const MeasurementFile file = read_measurements(path);
  return Collector(file, lookup).collect();
}

bool held_out(const TensorShape& shape, TensorHoldout holdout) {
  if (holdout == TensorHoldout::none) return false;
  const std::uint64_t hash = fnv1a(hashed_text(shape, holdout == TensorHoldout::shapes));
  return hash % kHoldOutOneIn == 0;
}

std::vector<TensorSample> filtered(const std::vector<TensorSample>& samples,
                                   const std::function<bool(const TensorSample&)>& keep) {
  std::vector<TensorSample> kept;
  std::ranges::copy_if(samples, std::back_inserter(kept), keep);
  return kept;
}

}  // namespace tessera
