#include "sim/report/drawings/svg_canvas.h"

#include <charconv>
#include <utility>

namespace tessera {
namespace {

/// Two decimals at most, locale-independent.
std::string pixels(double value) {
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 2).ptr;
  std::string text(digits, end);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : words) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string_view anchor_name(TextAnchor anchor) {
  if (anchor == TextAnchor::middle) return "middle";
  return anchor == TextAnchor::end ? "end" : "start";
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height) {
  svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + pixels(width) + ' ' +
         pixels(height) + '"';
  attribute("width", width);
  attribute("height", height);
  attribute("font-family", "Helvetica, Arial, 'DejaVu Sans', sans-serif");
  svg_ += ">\n";
  rect({0, 0, width, height}, "#ffffff");
}

void SvgCanvas::rect(const SvgBox& box, std::string_view fill, double opacity) {
  svg_ += "<rect";
  attribute("x", box.x);
  attribute("y", box.y);
  attribute("width", box.width);
  attribute("height", box.height);
  attribute("fill", fill);
  if (opacity < 1) attribute("fill-opacity", opacity);
  svg_ += "/>\n";
}

void SvgCanvas::line(SvgPoint from, SvgPoint to, std::string_view stroke, std::string_view dashes) {
  svg_ += "<line";
  attribute("x1", from.x);
  attribute("y1", from.y);
  attribute("x2", to.x);
  attribute("y2", to.y);
  attribute("stroke", stroke);
  if (!dashes.empty()) attribute("stroke-dasharray", dashes);
  svg_ += "/>\n";
}

void SvgCanvas::polygon(std::span<const SvgPoint> points, std::string_view fill, double opacity) {
  svg_ += "<polygon points=\"";
  for (const SvgPoint& point : points) svg_ += pixels(point.x) + ',' + pixels(point.y) + ' ';
  svg_ += '"';
  attribute("fill", fill);
  attribute("fill-opacity", opacity);
  svg_ += "/>\n";
}

void SvgCanvas::text(SvgPoint at, std::string_view words, const SvgTextStyle& style) {
  svg_ += "<text";
  attribute("x", at.x);
  attribute("y", at.y);
  attribute("font-size", style.size);
  attribute("fill", style.fill);
  if (style.anchor != TextAnchor::start) attribute("text-anchor", anchor_name(style.anchor));
  if (style.bold) attribute("font-weight", "bold");
  svg_ += '>' + escaped(words) + "</text>\n";
}

void SvgCanvas::begin_group(std::string_view title) {
  svg_ += "<g><title>" + escaped(title) + "</title>\n";
}

void SvgCanvas::end_group() {
  svg_ += "</g>\n";
}

std::string SvgCanvas::finish() {
  svg_ += "</svg>\n";
  return std::exchange(svg_, {});
}

void SvgCanvas::attribute(std::string_view name, double value) {
  attribute(name, pixels(value));
}

void SvgCanvas::attribute(std::string_view name, std::string_view value) {
  svg_ += ' ';
  svg_ += name;
  svg_ += "=\"";
  svg_ += value;
  svg_ += '"';
}

}  // namespace tessera
