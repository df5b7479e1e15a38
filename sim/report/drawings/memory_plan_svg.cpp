#include <algorithm>
#include <string_view>

#include "hw/units/text.h"
#include "sim/report/drawings/svg_canvas.h"
#include "sim/report/palette.h"
#include "sim/report/text/memory_plan_text.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

constexpr double kPlanWidth = 900;
constexpr double kPlanHeight = 420;
/// As pages have it: --warn of app/html/page.
constexpr std::string_view kBudgetColour = "#9a6200";
constexpr double kPlotLeft = 70, kPlotRight = 20, kPlotTop = 50, kPlotBottom = 50;

/// Two staircases over the share of the program that has run: highest memory of each op.
class ProfilePicture {
 public:
  ProfilePicture(const MemoryPlanReport& report, int stage)
      : memory_(report.steps->memory),
        before_(profile(report.steps->base, stage)),
        after_(profile(report.steps->planned, stage)),
        scale_(std::max({before_.peak, after_.peak, memory_.budget})) {}

  std::string draw(const std::string& title) {
    canvas_.text({kPlotLeft, 24}, title, {.size = 15, .bold = true});
    area(before_, look_of(TimeCategory::other_idle).colour, 0.6);
    area(after_, look_of(TimeCategory::forward).colour, 0.7);
    const double y = y_of(memory_.budget);
    canvas_.line({kPlotLeft, y}, {kPlanWidth - kPlotRight, y}, kBudgetColour, "6 4");
    canvas_.text({kPlotLeft + 4, y - 5}, "budget " + to_short_text(memory_.budget),
                 {.fill = kBudgetColour});
    axis();
    return canvas_.finish();
  }

 private:
  static MemoryProfile profile(const TimedProgram& timed, int stage) {
    return profile_memory(timed.program, stage, timed.library_memory.allocator);
  }
  double y_of(Bytes bytes) const {
    const double share = static_cast<double>(bytes.value()) / static_cast<double>(scale_.value());
    return kPlanHeight - kPlotBottom - share * (kPlanHeight - kPlotTop - kPlotBottom);
  }
  static double x_of(std::size_t i, std::size_t count) {
    return kPlotLeft + (kPlanWidth - kPlotLeft - kPlotRight) * static_cast<double>(i) /
                           static_cast<double>(std::max<std::size_t>(1, count));
  }

  void area(const MemoryProfile& profile, std::string_view colour, double opacity) {
    const std::size_t count = profile.over_ops.size();
    std::vector<SvgPoint> points{{kPlotLeft, y_of(Bytes(0))}};
    for (std::size_t i = 0; i < count; ++i) {
      const double y = y_of(profile.over_ops[i].highest.total());
      points.push_back({x_of(i, count), y});
      points.push_back({x_of(i + 1, count), y});
    }
    points.push_back({kPlanWidth - kPlotRight, y_of(Bytes(0))});
    canvas_.polygon(points, colour, opacity);
  }

  void axis() {
    constexpr int kTicks = 5;
    for (int i = 0; i <= kTicks; ++i) {
      const Bytes bytes(scale_.value() * i / kTicks);
      canvas_.text({kPlotLeft - 6, y_of(bytes) + 4}, to_short_text(bytes),
                   {.anchor = TextAnchor::end});
    }
    canvas_.text({kPlotLeft, kPlanHeight - 18},
                 "ops of the step in order (its first micro-batches); grey: without a plan, blue: "
                 "with it",
                 {});
  }

  const PlannedStep& memory_;
  MemoryProfile before_, after_;
  Bytes scale_;
  SvgCanvas canvas_{kPlanWidth, kPlanHeight};
};

}  // namespace

std::string memory_plan_svg(const MemoryPlanReport& report, int stage) {
  return ProfilePicture(report, stage)
      .draw(report.scenario + ", stage " + std::to_string(stage) + ", " + report.planner);
}

}  // namespace tessera
