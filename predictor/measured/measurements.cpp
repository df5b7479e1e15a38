#include "predictor/measured/measurements.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "hw/units/input_error.h"
#include "predictor/measured/kernel_csv.h"
#include "predictor/product_format.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kMeasuredOps> kOpNames{
    "linear",     "bmm",        "add",  "mul",  "div",  "pow",     "add_scalar", "mul_scalar",
    "div_scalar", "pow_scalar", "relu", "gelu", "tanh", "softmax", "layer_norm", "conv2d"};

/// "use one of a, b, c".
template <class Values, class Name>
std::string known_words(const Values& values, Name name_of_value) {
  std::string list;
  for (const auto& value : values)
    list += (list.empty() ? "use one of " : ", ") + std::string(name_of_value(value));
  return list;
}

enum Column : std::size_t {
  kGpu,
  kOp,
  kBatch,
  kM,
  kN,
  kK,
  kRows,
  kCols,
  kInChannels,
  kOutChannels,
  kKernelSize,
  kInputSize,
  kStride,
  kPaddingColumn,
  kSplit,
  kLatency,
  kKernelName,
  kGridX,
  kGridY,
  kGridZ,
  kTiming,
  kDtype,
  kStack,
  kLayout,
  kAccumulate,
  kWarm,
  kColumns
};
constexpr std::array<std::string_view, kColumns> kColumnNames{
    "gpu",   "op",          "batch",        "m",           "n",          "k",      "rows",
    "cols",  "in_channels", "out_channels", "kernel_size", "input_size", "stride", "padding",
    "split", "latency_us",  "kernel_name",  "grid_x",      "grid_y",     "grid_z", "timing",
    "dtype", "stack",       "layout",       "accumulate",  "warm"};
constexpr std::array kVectorColumns{kGpu, kOp, kBatch, kM, kN, kK, kRows, kCols};
constexpr std::array kConvolutionColumns{
    kGpu, kOp, kBatch, kInChannels, kOutChannels, kKernelSize, kInputSize, kStride, kPaddingColumn};
constexpr std::array kProductColumns{kGpu, kM, kN, kK};  ///< without op, with dtype
constexpr std::array<std::string_view, 3> kTimingNames{"isolated", "graph", "queue"};

constexpr int kReplayedSets = 5;
constexpr std::size_t kMaxProblems = 20;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMaxWindow = 1 << 15;
constexpr double kMaxElements = 0x1.0p58;  ///< of a tensor, so that its bytes can be counted

/// "volta_sgemm_128x64_tn" -> {128, 64}; {0, 0} where the name states no tile.
std::pair<int, int> tile_in(std::string_view kernel_name) {
  constexpr std::string_view kMarker = "sgemm_";
  const std::size_t at = kernel_name.find(kMarker);
  if (at == std::string_view::npos) return {0, 0};
  const char* begin = kernel_name.data() + at + kMarker.size();
  const char* const end = kernel_name.data() + kernel_name.size();
  int a = 0, b = 0;
  const auto first = std::from_chars(begin, end, a);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return {0, 0};
  const auto second = std::from_chars(first.ptr + 1, end, b);
  return second.ec == std::errc() ? std::pair{a, b} : std::pair{0, 0};
}

class Reader {
 public:
  Reader(MeasurementFile& file, UnreadRows bad) : file_(file), bad_(bad) {}

  void read() {
    std::string_view rest = *file_.text;
    file_.header = next_line(rest);
    check_header(file_.path, file_.header);
    locate_columns();
    file_.rows.reserve(file_.text->size() / 130);
    while (!rest.empty() && problems_.size() < kMaxProblems) {
      const std::string_view line = next_line(rest);
      if (!line.empty()) read_row(line);
      if (bad_ == UnreadRows::kept) keep_problems(line);
    }
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  void keep_problems(std::string_view line) {
    if (problems_.empty()) return;
    file_.bad_rows.emplace_back(line, problems_.front().what + "; " + problems_.front().hint);
    problems_.clear();
  }

  std::string_view next_line(std::string_view& rest) {
    ++line_number_;
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  void problem(std::string what, std::string hint) {
    problems_.push_back({.where = file_.path.string() + ":" + std::to_string(line_number_),
                         .what = std::move(what),
                         .hint = std::move(hint)});
  }

  void locate_columns() {
    const CsvFields names = split_fields(file_.header);
    columns_ = names.count;
    const auto end = names.values.begin() + static_cast<std::ptrdiff_t>(names.count);
    for (std::size_t column = 0; column < kColumns; ++column) {
      const auto found = std::find(names.values.begin(), end, kColumnNames[column]);
      position_[column] = static_cast<std::size_t>(found - names.values.begin());
    }
    products_only_ = !has(kOp) && has(kDtype);
    if (products_only_) {
      require(kProductColumns, "the format is that of measurements/kernels/tensor_core.csv");
    } else if (has(kInChannels)) {
      require(kConvolutionColumns, "the format is that of measurements/kernels/fp32_conv.csv");
    } else {
      require(kVectorColumns, "the format is that of measurements/kernels/fp32.csv");
    }
    if (!has(kLatency)) refuse_other_times(names);
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

  /// Times under another name would pass for calls that nobody timed.
  void refuse_other_times(const CsvFields& names) {
    for (std::size_t i = 0; i < names.count; ++i)
      if (names.values[i].starts_with("latency") || names.values[i].starts_with("time_"))
        problem("column " + std::string(names.values[i]) + " is not read",
                "the time of a call is latency_us, in microseconds");
  }

  bool has(Column column) const { return position_[column] < columns_; }

  void require(std::span<const Column> columns, const char* hint) {
    for (const Column column : columns) {
      if (!has(column))
        problem("column " + std::string(kColumnNames[column]) + " is missing", hint);
    }
  }

  std::string_view field(const CsvFields& fields, Column column) const {
    return position_[column] < fields.count ? fields.values[position_[column]] : std::string_view();
  }

  void read_row(std::string_view line) {
    const CsvFields fields = split_fields(line);
    if (fields.count != columns_) {
      problem(
          std::to_string(fields.count) + " fields where the header has " + std::to_string(columns_),
          "write every column; leave a field empty where nothing is known");
      return;
    }
    const std::string_view op_name = products_only_ ? kOpNames[0] : field(fields, kOp);
    const auto op = std::ranges::find(kOpNames, op_name);
    if (op == kOpNames.end()) {
      problem("unknown op '" + std::string(op_name) + "'",
              known_words(kOpNames, [](std::string_view name) { return name; }));
      return;
    }
    KernelMeasurement row;
    row.op = static_cast<MeasuredOp>(op - kOpNames.begin());
    row.gpu = gpu_number(field(fields, kGpu));
    row.line = line;
    if (read_method(fields, row) && read_extents(fields, row) && read_latency(fields, row)) {
      read_launch(fields, row);
      file_.rows.push_back(row);
    }
  }

  /// Split, way of timing and number format.
  bool read_method(const CsvFields& fields, KernelMeasurement& row) {
    if (!read_timing(fields, row) || !read_precision(fields, row)) return false;
    read_layout(fields, row);
    row.train = field(fields, kSplit) == "train" && row.precision == Precision::fp32 &&
                row.timing == CallTiming::isolated;
    row.test = field(fields, kSplit) == "test";
    row.stack = field(fields, kStack);
    return read_warmth(fields, row);
  }

  bool read_timing(const CsvFields& fields, KernelMeasurement& row) {
    const std::string_view timing = field(fields, kTiming);
    const auto known = std::ranges::find(kTimingNames, timing);
    if (known != kTimingNames.end()) {
      row.timing = static_cast<CallTiming>(known - kTimingNames.begin());
      if (row.timing != CallTiming::isolated) row.load = Load::sustained;
    } else if (timing.empty()) {
      row.timing = products_only_ ? CallTiming::graph : CallTiming::isolated;
    } else {
      problem("timing = '" + std::string(timing) + "' is not known",
              "isolated, graph or queue; empty = " +
                  std::string(products_only_ ? "graph" : "isolated"));
      return false;
    }
    return true;
  }

  bool read_precision(const CsvFields& fields, KernelMeasurement& row) {
    const std::string_view dtype = field(fields, kDtype);
    const auto named = std::ranges::find(kAllPrecisions, dtype,
                                         [](Precision precision) { return name_of(precision); });
    const ProductFormat* format = bad_ == UnreadRows::kept ? product_format(dtype) : nullptr;
    const bool product = products_only_ || row.op == MeasuredOp::linear;
    if (named == kAllPrecisions.end() && !dtype.empty() && (!product || format == nullptr)) {
      problem("dtype = '" + std::string(dtype) + "' is not known",
              known_words(kAllPrecisions, [](Precision p) { return name_of(p); }));
      return false;
    }
    row.precision = named == kAllPrecisions.end() ? Precision::fp32 : *named;
    if (product && format != nullptr) {
      row.precision = Precision::fp8;
      row.format = format->name;
    }
    return true;
  }

  /// Whether operands lie in the caches, or how many sets of them are taken in turns.
  bool read_warmth(const CsvFields& fields, KernelMeasurement& row) {
    const std::string_view warm = field(fields, kWarm);
    if (warm != "" && warm != "0" && warm != "1") {
      problem("warm = '" + std::string(warm) + "' is not known", "0 or 1");
      return false;
    }
    const bool replayed = products_only_ && row.timing == CallTiming::graph;
    row.warm_sets = warm == "1" ? 1 : warm.empty() && replayed ? kReplayedSets : 0;
    return true;
  }

  void read_layout(const CsvFields& fields, KernelMeasurement& row) const {
    if (row.op != MeasuredOp::linear) return;
    const std::string_view layout = field(fields, kLayout);
    if (layout == "NN" || layout == "nn") row.layout = GemmLayout::nn;
    if (layout == "NT" || layout == "nt") row.layout = GemmLayout::nt;
    row.accumulate = field(fields, kAccumulate) == "1";
  }

  std::uint16_t gpu_number(std::string_view id) {
    if (last_gpu_ < file_.gpus.size() && file_.gpus[last_gpu_] == id) return last_gpu_;
    const auto found = std::ranges::find(file_.gpus, id);
    last_gpu_ = static_cast<std::uint16_t>(found - file_.gpus.begin());
    if (found == file_.gpus.end()) file_.gpus.emplace_back(id);
    return last_gpu_;
  }

  bool read_extent(const CsvFields& fields, Column column, std::int64_t& extent) {
    const std::string_view text = field(fields, column);
    const auto value = parse_number<std::int64_t>(text);
    if (value && *value > 0 && *value < kMaxExtent) {
      extent = *value;
      return true;
    }
    problem(std::string(kColumnNames[column]) + " = '" + std::string(text) + "' is not a size",
            "a whole number of elements, at least 1");
    return false;
  }

  bool read_extents(const CsvFields& fields, KernelMeasurement& row) {
    if (row.op == MeasuredOp::conv2d) return read_convolution(fields, row);
    if (products_only_) {
      row.batch = 1;
      return read_extent(fields, kM, row.m) && read_extent(fields, kN, row.n) &&
             read_extent(fields, kK, row.k);
    }
    if (row.op == MeasuredOp::linear || row.op == MeasuredOp::bmm)
      return read_extent(fields, kBatch, row.batch) && read_extent(fields, kM, row.m) &&
             read_extent(fields, kN, row.n) && read_extent(fields, kK, row.k);
    return read_extent(fields, kRows, row.rows) && read_extent(fields, kCols, row.cols);
  }

  /// A small number of at least `least`.
  bool read_window(const CsvFields& fields, Column column, std::int64_t least, std::int32_t& size) {
    const std::string_view text = field(fields, column);
    const auto value = parse_number<std::int64_t>(text);
    if (value && *value >= least && *value <= kMaxWindow) {
      size = static_cast<std::int32_t>(*value);
      return true;
    }
    problem(std::string(kColumnNames[column]) + " = '" + std::string(text) + "' is not a size",
            "a whole number of elements, from " + std::to_string(least) + " to " +
                std::to_string(kMaxWindow));
    return false;
  }

  bool read_convolution(const CsvFields& fields, KernelMeasurement& row) {
    const bool read =
        read_extent(fields, kBatch, row.batch) && read_extent(fields, kInChannels, row.k) &&
        read_extent(fields, kOutChannels, row.n) && read_extent(fields, kInputSize, row.rows) &&
        read_window(fields, kKernelSize, 1, row.window) &&
        read_window(fields, kStride, 1, row.stride) &&
        read_window(fields, kPaddingColumn, 0, row.padding);
    if (!read) return false;
    row.cols = row.rows;
    const auto padded = static_cast<double>(row.rows + 2 * std::int64_t{row.padding});
    const auto batch = static_cast<double>(row.batch), in = static_cast<double>(row.k),
               out = static_cast<double>(row.n);
    const double window = row.window;
    if (window > padded) {
      problem("a window of " + std::to_string(row.window) + " does not fit into the padded image",
              "kernel_size is at most input_size + 2 padding");
      return false;
    }
    if (std::max({batch * in * padded * padded, batch * out * padded * padded,
                  in * out * window * window}) > kMaxElements) {
      problem("the tensors of the convolution hold more than 2^58 elements", "no GPU holds them");
      return false;
    }
    row.earlier = convolutions_[row.gpu]++;
    return true;
  }

  bool read_latency(const CsvFields& fields, KernelMeasurement& row) {
    const std::string_view text = field(fields, kLatency);
    if (text.empty()) return true;
    const auto value = parse_number<double>(text);
    if (!value || !(*value > 0) || !(*value < 1e12)) {
      problem("latency_us = '" + std::string(text) + "' is not a duration",
              "microseconds above 0, or empty");
      return false;
    }
    row.latency_us = *value;
    return true;
  }

  void read_launch(const CsvFields& fields, KernelMeasurement& row) const {
    std::tie(row.tile_a, row.tile_b) = tile_in(field(fields, kKernelName));
    const auto x = parse_number<std::int64_t>(field(fields, kGridX));
    const auto y = parse_number<std::int64_t>(field(fields, kGridY));
    const auto z = parse_number<std::int64_t>(field(fields, kGridZ));
    if (x && y && z) row.blocks = *x * *y * *z;
  }

  MeasurementFile& file_;
  UnreadRows bad_;
  std::array<std::size_t, kColumns> position_{};
  std::size_t columns_ = 0;
  bool products_only_ = false;  ///< format of tensor_core.csv
  std::size_t line_number_ = 0;
  std::uint16_t last_gpu_ = 0;
  std::map<std::uint16_t, std::int32_t> convolutions_;  ///< rows so far, by GPU
  std::vector<Problem> problems_;
};

std::string read_text(const std::filesystem::path& path) {
  return read_kernel_table(path,
                           "give a file in the format of measurements/kernels/fp32.csv, "
                           "fp32_conv.csv or tensor_core.csv");
}

}  // namespace

std::string_view name_of(MeasuredOp op) {
  return kOpNames[static_cast<std::size_t>(op)];
}

MeasurementFile read_measurements(const std::filesystem::path& path, UnreadRows bad) {
  MeasurementFile file;
  file.path = path;
  file.text = std::make_shared<const std::string>(read_text(path));
  Reader(file, bad).read();
  return file;
}

}  // namespace tessera
