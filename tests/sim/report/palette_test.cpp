#include "sim/report/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

constexpr Matrix kFullSight{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
/// Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
constexpr Matrix kProtanopia{{{0.152286, 1.052583, -0.204868},
                              {0.114503, 0.786281, 0.099216},
                              {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeuteranopia{{{0.367322, 0.860646, -0.227968},
                                {0.280085, 0.672501, 0.047413},
                                {-0.011820, 0.042940, 0.968881}}};
/// OKLab (Ottosson 2020): linear RGB to cones, roots of cones to lightness, green-red, blue-yellow.
constexpr Matrix kCones{{{0.4122214708, 0.5363325363, 0.0514459929},
                         {0.2119034982, 0.6806995451, 0.1073969566},
                         {0.0883024619, 0.2817188376, 0.6299787005}}};
constexpr Matrix kLab{{{0.2104542553, 0.7936177850, -0.0040720468},
                       {1.9779984951, -2.4285922050, 0.4505937099},
                       {0.0259040371, 0.7827717662, -0.8086757660}}};

Triple times(const Matrix& matrix, const Triple& v) {
  Triple product{};
  for (std::size_t i = 0; i < 3; ++i)
    product[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  return product;
}

/// "#rrggbb" as linear RGB in [0, 1].
Triple linear(std::string_view colour) {
  Triple rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double value = std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    rgb[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return rgb;
}

/// Seen with `sight`, in OKLab.
Triple seen(std::string_view colour, const Matrix& sight) {
  Triple rgb = times(sight, linear(colour));
  for (double& value : rgb) value = std::clamp(value, 0.0, 1.0);
  Triple cones = times(kCones, rgb);
  for (double& value : cones) value = std::cbrt(value);
  return times(kLab, cones);
}

double distance(const Triple& a, const Triple& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

double smallest_distance(const Matrix& sight) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const TimeCategory a : time_categories())
    for (const TimeCategory b : time_categories())
      if (a < b)
        smallest = std::min(
            smallest, distance(seen(look_of(a).colour, sight), seen(look_of(b).colour, sight)));
  return smallest;
}

TEST(Palette, TheMeasureKnowsColoursThatTheColourBlindConfuse) {
  const auto between = [](const Matrix& sight) {
    return distance(seen("#d64a3a", sight), seen("#6f7d1f", sight));  // a red and an olive
  };
  EXPECT_GT(between(kFullSight), 0.15);
  EXPECT_LT(between(kDeuteranopia), 0.088);
  EXPECT_NEAR(distance(seen("#ffffff", kFullSight), seen("#000000", kFullSight)), 1.0, 1e-3);
}

TEST(Palette, AnyTwoOfThe17ClassesDifferForEverySight) {
  // 0.02 is what an eye just tells apart in OKLab.
  EXPECT_GT(smallest_distance(kProtanopia), 0.088);
  EXPECT_GT(smallest_distance(kDeuteranopia), 0.088);
  EXPECT_GT(smallest_distance(kFullSight), 0.1);
}

TEST(Palette, WhatWaitsIsGreyAndWhatWorksIsNot) {
  const auto chroma = [](TimeCategory category) {
    const Triple lab = seen(look_of(category).colour, kFullSight);
    return std::hypot(lab[1], lab[2]);
  };
  EXPECT_LT(chroma(TimeCategory::bubble), 0.02);
  EXPECT_LT(chroma(TimeCategory::other_idle), 0.02);
  for (const TimeCategory category :
       {TimeCategory::forward, TimeCategory::backward, TimeCategory::optimizer})
    EXPECT_GT(chroma(category), 0.1) << look_of(category).words;
}

TEST(Palette, EveryClassHasWordsAndAViewersNameOfItsOwn) {
  std::set<std::string_view> words, names;
  for (const TimeCategory category : time_categories()) {
    words.insert(look_of(category).words);
    names.insert(look_of(category).viewer_name);
  }
  EXPECT_EQ(words.size(), 17u);
  EXPECT_EQ(names.size(), 17u);
}

TEST(Palette, AnOpHasTheColourOfTheTimeThatItTakes) {
  EXPECT_EQ(class_of({.kind = OpKind::kernels, .phase = Phase::backward}), TimeCategory::backward);
  EXPECT_EQ(class_of({.kind = OpKind::send}), TimeCategory::exposed_pipeline);
  EXPECT_EQ(class_of({.kind = OpKind::copy_in}), TimeCategory::exposed_swap);
  EXPECT_EQ(class_of({.kind = OpKind::all_reduce, .group = GroupKind::tensor}),
            TimeCategory::exposed_tensor);
}

}  // namespace
}  // namespace tessera
