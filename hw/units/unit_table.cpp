#include "hw/units/unit_table.h"

namespace tessera {
namespace {

constexpr double kKibi = 1024;
constexpr double kMebi = kKibi * kKibi;
constexpr double kGibi = kMebi * kKibi;
constexpr double kTebi = kGibi * kKibi;
constexpr double kByteOfBit = 0.125;

constexpr Unit kRatio[] = {{"", 0, 1, true}, {"%", -2}};

constexpr Unit kBytes[] = {
    {"B", 0, 1, true}, {"kB", 3},         {"MB", 6},         {"GB", 9},         {"TB", 12},
    {"PB", 15},        {"KiB", 0, kKibi}, {"MiB", 0, kMebi}, {"GiB", 0, kGibi}, {"TiB", 0, kTebi}};

constexpr Unit kBytesPerSecond[] = {
    {"B/s", 0, 1, true},     {"kB/s", 3, 1, true},     {"MB/s", 6, 1, true},
    {"GB/s", 9, 1, true},    {"TB/s", 12, 1, true},    {"KiB/s", 0, kKibi},
    {"MiB/s", 0, kMebi},     {"GiB/s", 0, kGibi},      {"TiB/s", 0, kTebi},
    {"b/s", 0, kByteOfBit},  {"kb/s", 3, kByteOfBit},  {"Mb/s", 6, kByteOfBit},
    {"Gb/s", 9, kByteOfBit}, {"Tb/s", 12, kByteOfBit}, {"Mbps", 6, kByteOfBit},
    {"Gbps", 9, kByteOfBit}, {"Tbps", 12, kByteOfBit}};

constexpr Unit kSeconds[] = {{"s", 0, 1, true},   {"ns", -9, 1, true}, {"us", -6, 1, true},
                             {"ms", -3, 1, true}, {"min", 0, 60},      {"h", 0, 3600},
                             {"d", 0, 86'400}};

constexpr Unit kFlops[] = {{"FLOP", 0, 1, true},   {"kFLOP", 3, 1, true},  {"MFLOP", 6, 1, true},
                           {"GFLOP", 9, 1, true},  {"TFLOP", 12, 1, true}, {"PFLOP", 15, 1, true},
                           {"EFLOP", 18, 1, true}, {"ZFLOP", 21, 1, true}};

constexpr Unit kFlopsPerSecond[] = {{"FLOPS", 0, 1, true},
                                    {"GFLOPS", 9, 1, true},
                                    {"TFLOPS", 12, 1, true},
                                    {"PFLOPS", 15, 1, true},
                                    {"EFLOPS", 18, 1, true},
                                    {"FLOP/s", 0},
                                    {"GFLOP/s", 9},
                                    {"TFLOP/s", 12},
                                    {"PFLOP/s", 15},
                                    {"EFLOP/s", 18},
                                    {"GOPS", 9},
                                    {"TOPS", 12},
                                    {"POPS", 15}};

constexpr Unit kHertz[] = {
    {"Hz", 0, 1, true}, {"kHz", 3, 1, true}, {"MHz", 6, 1, true}, {"GHz", 9, 1, true}};

constexpr Unit kWatts[] = {{"W", 0, 1, true}, {"kW", 3, 1, true}, {"MW", 6, 1, true}};

}  // namespace

std::span<const Unit> units_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::ratio:
      return kRatio;
    case Dimension::bytes:
      return kBytes;
    case Dimension::bytes_per_second:
      return kBytesPerSecond;
    case Dimension::seconds:
      return kSeconds;
    case Dimension::flops:
      return kFlops;
    case Dimension::flops_per_second:
      return kFlopsPerSecond;
    case Dimension::hertz:
      return kHertz;
    case Dimension::watts:
      return kWatts;
  }
  return {};
}

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::ratio:
      return "ratio";
    case Dimension::bytes:
      return "size";
    case Dimension::bytes_per_second:
      return "bandwidth";
    case Dimension::seconds:
      return "time";
    case Dimension::flops:
      return "number of operations";
    case Dimension::flops_per_second:
      return "compute rate";
    case Dimension::hertz:
      return "frequency";
    case Dimension::watts:
      return "power";
  }
  return "";
}

std::string listed_units(Dimension dimension) {
  std::string list;
  for (const Unit& unit : units_of(dimension)) {
    if (unit.symbol.empty()) continue;
    if (!list.empty()) list += ", ";
    list += unit.symbol;
  }
  return list;
}

}  // namespace tessera
