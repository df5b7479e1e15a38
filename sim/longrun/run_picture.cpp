#include "sim/longrun/run_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "hw/units/formatted.h"
#include "sim/longrun/run_answer.h"
#include "sim/report/drawings/svg_canvas.h"
#include "sim/report/palette.h"

namespace tessera {
namespace {

constexpr std::int64_t kMostLines = 62;
constexpr std::size_t kMostSpans = 20'000;  ///< of which checkpoints are drawn too
constexpr double kLeft = 70, kTop = 64, kWidth = 960, kLine = 14, kGap = 3, kRight = 20;

std::string_view palette(TimeCategory category) {
  return look_of(category).colour;
}

/// In the order of Activity, in colours of sim/report/palette.h; what waits is grey.
const std::array<ActivityLook, kActivityCount>& looks() {
  static const std::array<ActivityLook, kActivityCount> kLooks = {
      {{"trains", palette(TimeCategory::forward)},
       {"writes a checkpoint", palette(TimeCategory::exposed_swap)},
       {"has not noticed yet", palette(TimeCategory::bubble)},
       {"restarts", palette(TimeCategory::optimizer)},
       {"waits for nodes", palette(TimeCategory::other_idle)},
       {"work that is lost", palette(TimeCategory::exposed_tensor)}}};
  return kLooks;
}

class TimelinePicture {
 public:
  TimelinePicture(const std::string& title, const std::vector<ActivitySpan>& timeline)
      : timeline_(timeline),
        days_per_line_(days_per_line(timeline)),
        line_(days_of(days_per_line_)),
        lines_((timeline.back().end.value() + line_.value() - 1) / line_.value()),
        canvas_(kLeft + kWidth + kRight, kTop + static_cast<double>(lines_) * (kLine + kGap) + 12) {
    canvas_.text({kLeft, 20}, title, {.size = 14, .bold = true});
  }

  std::string draw() && {
    draw_legend();
    draw_days();
    for (const ActivitySpan& span : joined_spans(timeline_)) draw_span(span);
    if (timeline_.size() <= kMostSpans)
      for (const ActivitySpan& span : timeline_)
        if (span.activity == Activity::checkpoint) draw_span(span);
    return canvas_.finish();
  }

 private:
  static std::int64_t days_per_line(const std::vector<ActivitySpan>& timeline) {
    const double days = in_hours(timeline.back().end) / 24;
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(days / static_cast<double>(kMostLines))));
  }

  double top_of(std::int64_t line) const {
    return kTop + static_cast<double>(line) * (kLine + kGap);
  }

  void draw_legend() {
    std::array<Micros, kActivityCount> times{};
    for (const ActivitySpan& span : timeline_)
      times[static_cast<std::size_t>(span.activity)] += span.end - span.begin;
    double x = kLeft;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i].value() == 0) continue;
      const double share = times[i] / timeline_.back().end;
      const std::string words = std::string(looks()[i].words) + formatted(" %.2f %%", 100 * share);
      canvas_.rect({x, 34, 11, 11}, looks()[i].colour);
      canvas_.text({x + 16, 44}, words, {});
      x += 30 + 6.2 * static_cast<double>(words.size());
    }
  }

  void draw_days() {
    for (std::int64_t line = 0; line < lines_; ++line)
      canvas_.text({kLeft - 8, top_of(line) + kLine - 3},
                   formatted("day %.0f", static_cast<double>(line * days_per_line_ + 1)),
                   {.anchor = TextAnchor::end});
  }

  /// A span over several lines is drawn on each.
  void draw_span(const ActivitySpan& span) {
    for (Micros at = span.begin; at < span.end;) {
      const std::int64_t line = at.value() / line_.value();
      const Micros end = std::min(span.end, line_ * (line + 1));
      const double x = kWidth * ((at - line_ * line) / line_);
      const double width = kWidth * ((end - at) / line_);
      const bool seen = span.activity != Activity::checkpoint || width >= 0.2;
      if (seen)
        canvas_.rect({kLeft + x, top_of(line), std::max(width, 0.5), kLine},
                     look_of(span.activity).colour);
      at = end;
    }
  }

  const std::vector<ActivitySpan>& timeline_;
  std::int64_t days_per_line_;
  Micros line_;
  std::int64_t lines_;
  SvgCanvas canvas_;
};

}  // namespace

const ActivityLook& look_of(Activity activity) {
  return looks()[static_cast<std::size_t>(activity)];
}

std::string timeline_picture(const std::string& title, const std::vector<ActivitySpan>& timeline) {
  if (timeline.empty()) return SvgCanvas(kLeft + kWidth + kRight, kTop).finish();
  return TimelinePicture(title, timeline).draw();
}

}  // namespace tessera
