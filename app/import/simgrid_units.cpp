#include "app/import/simgrid_units.h"

#include <charconv>
#include <cmath>
#include <map>

namespace tessera {
namespace {

struct Parts {
  double number = 0;
  std::string unit;
};

std::optional<Parts> parts_of(const std::string& text) {
  Parts parts;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, parts.number);
  if (failure != std::errc() || !std::isfinite(parts.number)) return std::nullopt;
  parts.unit.assign(rest, end);
  return parts;
}

/// "k", "Ki", "M" and so on; 0 for anything else.
double prefix_factor(const std::string& prefix) {
  static const std::map<std::string, double> kFactors{
      {"", 1},     {"k", 1e3},     {"K", 1e3},        {"M", 1e6},     {"G", 1e9},
      {"T", 1e12}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 0x1p30}, {"Ti", 0x1p40}};
  const auto found = kFactors.find(prefix);
  return found == kFactors.end() ? 0 : found->second;
}

}  // namespace

std::optional<BytesPerSecond> simgrid_bandwidth(const std::string& text) {
  const auto parts = parts_of(text);
  if (!parts) return std::nullopt;
  double factor = 1;
  if (!parts->unit.empty()) {
    if (!parts->unit.ends_with("ps") || parts->unit.size() < 3) return std::nullopt;
    const char kind = parts->unit[parts->unit.size() - 3];
    if (kind != 'b' && kind != 'B') return std::nullopt;
    factor =
        prefix_factor(parts->unit.substr(0, parts->unit.size() - 3)) * (kind == 'b' ? 0.125 : 1);
  }
  const double value = parts->number * factor;
  if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
  return BytesPerSecond(value);
}

std::optional<Seconds> simgrid_time(const std::string& text) {
  static const std::map<std::string, double> kFactors{{"", 1},      {"s", 1},     {"ms", 1e-3},
                                                      {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12},
                                                      {"m", 60},    {"h", 3600}};
  const auto parts = parts_of(text);
  if (!parts || parts->number < 0) return std::nullopt;
  const auto found = kFactors.find(parts->unit);
  if (found == kFactors.end()) return std::nullopt;
  return Seconds(parts->number * found->second);
}

}  // namespace tessera
