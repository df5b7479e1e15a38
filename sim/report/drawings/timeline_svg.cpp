#include "sim/report/drawings/timeline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/plan/device_memory.h"
#include "sim/report/drawings/svg_canvas.h"
#include "sim/report/drawings/timeline_slices.h"
#include "sim/report/palette.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

// Lengths in pixels.
constexpr double kLeft = 168;  // labels
constexpr double kRight = 24;
constexpr double kTop = 64;  // title and legend
constexpr double kAxisHeight = 34;
constexpr double kGpuGap = 10;
constexpr double kRowGap = 2;
constexpr double kSharpestGap = 1;    // closer bars of one colour are drawn as one
constexpr double kThinnestBar = 0.5;  // shorter ones are drawn that wide
constexpr double kBarGap = 0.6;       // white edge that keeps neighbours apart
constexpr double kLabelledBar = 15;   // wide enough for the number of a micro-batch
constexpr double kTicks = 8;

constexpr std::string_view kRowColour = "#f5f5f5";
constexpr std::string_view kGridColour = "#dcdcdc";
constexpr std::string_view kMemoryColour = "#3156bb";
constexpr std::string_view kCapacityColour = "#cc3311";
constexpr std::string_view kFaintText = "#777777";

std::string legend_words(std::string_view label) {
  std::string words(label);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// 1, 2 or 5 times a power of ten, about `ticks` of which make up `whole`.
double tick_step(double whole, double ticks) {
  const double rough = whole / ticks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power * 1.0001) return factor * power;
  }
  return 10 * power;
}

/// Unit in which a step of this length reads well.
struct TimeUnit {
  std::string_view name;
  double per_second;
};
TimeUnit unit_for(Seconds step_time) {
  if (step_time >= 1_s) return {"s", 1};
  return step_time >= 1_ms ? TimeUnit{"ms", 1e3} : TimeUnit{"us", 1e6};
}

std::string number(double value) {
  return formatted("%.10g", value);
}

std::vector<int> drawn_gpus(const TimelineIndex& index, int most) {
  std::vector<int> gpus;
  for (const auto& [rank, stands_for] : index.simulated()) {
    if (static_cast<int>(gpus.size()) < most) gpus.push_back(rank);
  }
  return gpus;
}

class TimelinePicture {
 public:
  TimelinePicture(const TimedProgram& timed, const Timeline& timeline, const SvgOptions& options)
      : timed_(timed),
        timeline_(timeline),
        options_(options),
        index_(timed, timeline),
        gpus_(drawn_gpus(index_, options.max_gpus)),
        plot_width_(options.width - kLeft - kRight),
        pixels_per_second_(timeline.step_time > Seconds() ? plot_width_ / timeline.step_time.value()
                                                          : 0.0),
        canvas_(options.width, kTop + rows_height() + kAxisHeight) {}

  std::string draw() {
    const SvgTextStyle title{.size = 15, .bold = true};
    canvas_.text({16, 26}, options_.title, title);
    draw_gpu_backgrounds();
    draw_axis();
    double y = kTop;
    for (const int rank : gpus_) y = draw_gpu(rank, y) + kGpuGap;
    draw_legend();
    if (gpus_.size() < index_.simulated().size()) note_left_out_gpus();
    return canvas_.finish();
  }

 private:
  double x_of(Seconds time) const { return kLeft + time.value() * pixels_per_second_; }

  std::vector<StreamKind> streams_of(int rank) const {
    std::array<bool, kStreamCount> used{};
    for (const ProgramOp& op : index_.program_of(rank).ops) {
      used[static_cast<std::size_t>(op.stream)] = true;
    }
    std::vector<StreamKind> streams;
    for (int i = 0; i < kStreamCount; ++i) {
      if (used[static_cast<std::size_t>(i)]) streams.push_back(static_cast<StreamKind>(i));
    }
    return streams;
  }

  double row_pitch() const { return options_.row_height + kRowGap; }
  double gpu_height(int rank) const {
    return row_pitch() * static_cast<double>(streams_of(rank).size()) + options_.memory_height;
  }
  double rows_height() const {
    double height = 0;
    for (const int rank : gpus_) height += gpu_height(rank) + kGpuGap;
    return height;
  }

  void draw_gpu_backgrounds() {
    double y = kTop;
    for (const int rank : gpus_) {
      canvas_.rect({kLeft, y, plot_width_, gpu_height(rank)}, kRowColour);
      y += gpu_height(rank) + kGpuGap;
    }
  }

  void draw_axis() {
    const double bottom = kTop + rows_height();
    const TimeUnit unit = unit_for(timeline_.step_time);
    const double whole = timeline_.step_time.value() * unit.per_second;
    if (whole <= 0) return;
    const double step = tick_step(whole, kTicks);
    for (int i = 0; i * step <= whole * 1.0001; ++i) {
      const double x = x_of(Seconds(i * step / unit.per_second));
      canvas_.line({x, kTop}, {x, bottom}, kGridColour);
      const std::string label = number(i * step) + ' ' + std::string(unit.name);
      canvas_.text({x, bottom + 14}, label, {.size = 11, .anchor = TextAnchor::middle});
    }
  }

  /// Returns the lower edge.
  double draw_gpu(int rank, double y) {
    const RankPosition at = index_.position(rank);
    const double first_line = y + 0.5 * options_.row_height + 4;
    canvas_.text({16, first_line}, "GPU " + std::to_string(rank), {.size = 12, .bold = true});
    if (timed_.program.layout.pipeline > 1) {
      canvas_.text({16, first_line + 14}, "stage " + std::to_string(at.pipeline),
                   {.size = 10, .fill = kFaintText});
    }
    for (const StreamKind stream : streams_of(rank)) {
      draw_label(legend_words(label_of(stream)), y + 0.5 * options_.row_height);
      const Seconds resolution(pixels_per_second_ > 0 ? kSharpestGap / pixels_per_second_ : 0.0);
      for (const TimelineSlice& slice : timeline_slices(index_, rank, stream, resolution)) {
        draw_slice(slice, y);
      }
      y += row_pitch();
    }
    if (options_.memory_height > 0) draw_memory(rank, y);
    return y + options_.memory_height;
  }

  void draw_label(const std::string& words, double middle) {
    canvas_.text({kLeft - 8, middle + 4}, words,
                 {.size = 10, .anchor = TextAnchor::end, .fill = kFaintText});
  }

  void draw_slice(const TimelineSlice& slice, double y) {
    const double x = x_of(slice.begin);
    const double full = x_of(slice.end) - x;
    const double width = std::max(kThinnestBar, full > 3 ? full - kBarGap : full);
    const auto kind = static_cast<std::size_t>(slice.kind);
    canvas_.rect({x, y, width, static_cast<double>(options_.row_height)},
                 look_of(slice.kind).colour);
    drawn_[kind] = true;
    if (slice.micro_batch < 0 || width < kLabelledBar) return;
    canvas_.text({x + width / 2, y + 0.5 * options_.row_height + 4},
                 std::to_string(slice.micro_batch),
                 {.size = 10, .anchor = TextAnchor::middle, .fill = "#ffffff"});
  }

  /// The staircase of memory in use, with what there is for it as a dashed line.
  void draw_memory(int rank, double y) {
    const Bytes peak = timeline_.peak_memory[static_cast<std::size_t>(rank)];
    const Bytes room = room_for_tensors(timed_);
    const Bytes scale = std::max({room, peak, 1_B});
    const double height = options_.memory_height - 2.0;
    const double bottom = y + height;
    const auto y_of = [&](Bytes used) { return bottom - height * (used / scale); };
    std::vector<SvgPoint> points{{kLeft, bottom}};
    double level = y_of(index_.program_of(rank).static_memory);
    points.push_back({kLeft, level});
    for (const MemorySample& sample : highest_per_pixel(rank)) {
      points.push_back({x_of(sample.time), level});
      level = y_of(sample.used);
      points.push_back({x_of(sample.time), level});
    }
    points.push_back({kLeft + plot_width_, level});
    points.push_back({kLeft + plot_width_, bottom});
    canvas_.polygon(points, kMemoryColour, 0.35);
    const double capacity = y_of(std::max(0_B, room));
    canvas_.line({kLeft, capacity}, {kLeft + plot_width_, capacity}, kCapacityColour, "4 3");
    draw_label("peak " + to_short_text(peak), y + 0.5 * height);
  }

  /// Of the samples that fall on one pixel, the highest; the last one always.
  std::vector<MemorySample> highest_per_pixel(int rank) const {
    std::vector<MemorySample> kept;
    for (const MemorySample& sample : index_.memory_of(rank)) {
      const bool same_pixel =
          !kept.empty() && std::floor(x_of(kept.back().time)) == std::floor(x_of(sample.time));
      if (!same_pixel) {
        kept.push_back(sample);
      } else if (sample.used > kept.back().used) {
        kept.back() = sample;
      }
    }
    if (!kept.empty()) kept.push_back(index_.memory_of(rank).back());
    return kept;
  }

  void draw_legend() {
    double x = kLeft;
    for (std::size_t kind = 0; kind < drawn_.size(); ++kind) {
      if (!drawn_[kind]) continue;
      const auto& [label, colour, viewer_name] = look_of(static_cast<TimeCategory>(kind));
      canvas_.rect({x, 40, 12, 12}, colour);
      canvas_.text({x + 17, 50}, label, {.size = 11});
      x += 36 + 6.2 * static_cast<double>(label.size());
    }
    if (options_.memory_height == 0) return;
    canvas_.rect({x, 40, 12, 12}, kMemoryColour, 0.35);
    canvas_.text({x + 17, 50}, "memory (dashed: all that tensors may take)", {.size = 11});
  }

  void note_left_out_gpus() {
    const std::string note =
        "GPUs not drawn: " + std::to_string(index_.simulated().size() - gpus_.size());
    canvas_.text({16, kTop + rows_height() + 14}, note, {.size = 10, .fill = kFaintText});
  }

  const TimedProgram& timed_;
  const Timeline& timeline_;
  const SvgOptions& options_;
  TimelineIndex index_;
  std::vector<int> gpus_;  ///< that are drawn: the first ones of those simulated
  double plot_width_;
  double pixels_per_second_;
  SvgCanvas canvas_;
  std::array<bool, kTimeCategoryCount> drawn_{};  // which colours the legend has to explain
};

}  // namespace

std::string timeline_svg(const TimedProgram& timed, const Timeline& timeline,
                         const SvgOptions& options) {
  return TimelinePicture(timed, timeline, options).draw();
}

}  // namespace tessera
