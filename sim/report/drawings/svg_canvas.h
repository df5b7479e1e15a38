#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// A point of a picture in pixels, from the top left corner.
struct SvgPoint {
  double x = 0;
  double y = 0;
};

struct SvgBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

enum class TextAnchor { start, middle, end };

struct SvgTextStyle {
  double size = 11;
  TextAnchor anchor = TextAnchor::start;
  std::string_view fill = "#333333";
  bool bold = false;
};

/// Collects the elements of an SVG file. Coordinates are written with two decimals, text is
/// escaped.
class SvgCanvas {
 public:
  SvgCanvas(double width, double height);

  void rect(const SvgBox& box, std::string_view fill, double opacity = 1.0);
  void line(SvgPoint from, SvgPoint to, std::string_view stroke, std::string_view dashes = "");
  void polygon(std::span<const SvgPoint> points, std::string_view fill, double opacity);
  /// What the pointer says over everything that is drawn until end_group().
  void begin_group(std::string_view title);
  void end_group();
  void text(SvgPoint at, std::string_view words, const SvgTextStyle& style);

  /// The whole file; the canvas is empty afterwards.
  std::string finish();

 private:
  void attribute(std::string_view name, double value);
  void attribute(std::string_view name, std::string_view value);

  std::string svg_;
};

}  // namespace tessera
