#include "sim/longrun/price_file.h"

#include <string>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

const std::string kHead =
    "gpu,region,date,kind,dollars_per_hour,interruptions_per_1000_node_days,notice,replacement,"
    "source\n";
const std::string kPrices = kHead +
                            "H100,east,2026-01-01,on_demand,3,,,,list\n"
                            "H100,east,2026-06-01,on_demand,2.5,,,,list\n"
                            "H100,west,2026-06-01,spot,1,400,2min,15min,list\n"
                            "A100,east,2026-06-01,on_demand,1.5,,,,list\n"
                            "A100,west,2026-06-01,on_demand,1.2,,,,list\n";

GpuPrice price(const std::string& text, const PriceQuery& query) {
  const ScratchFolder folder;
  return read_price(folder.write("prices.csv", text), query);
}

std::string price_complaint(const std::string& text, const PriceQuery& query) {
  try {
    price(text, query);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PriceFile, TheNewestPriceByTheDateCounts) {
  EXPECT_EQ(price(kPrices, {.gpu = "H100"}).dollars_per_hour, 2.5);
  EXPECT_EQ(price(kPrices, {.gpu = "H100", .date = "2026-05-31"}).dollars_per_hour, 3);
}

TEST(PriceFile, SpotInstancesAreACauseOfFailures) {
  const GpuPrice spot = price(kPrices, {.gpu = "H100", .spot = true});
  EXPECT_EQ(spot.notice, Seconds(120));
  const FailureClass of = interruptions_of(spot);
  EXPECT_DOUBLE_EQ(of.per_node_day, 0.4);
  EXPECT_EQ(of.repair, Seconds(900));
}

TEST(PriceFile, NothingIsChosenWhereSeveralAnswersFit) {
  EXPECT_NE(price_complaint(kPrices, {.gpu = "A100"}).find("--region east"), std::string::npos);
  EXPECT_EQ(price(kPrices, {.gpu = "A100", .region = "west"}).dollars_per_hour, 1.2);
}

TEST(PriceFile, WhatItLacksIsSaid) {
  EXPECT_NE(price_complaint(kPrices, {.gpu = "H100", .date = "2025-12-31"}).find("has no price"),
            std::string::npos);
  EXPECT_NE(
      price_complaint(kPrices, {.gpu = "A100", .spot = true}).find("has no price of A100, spot"),
      std::string::npos);
  EXPECT_NE(price_complaint(kHead + "H100,east,2026,on_demand,3,,,,list\n", {.gpu = "H100"})
                .find("YYYY-MM-DD"),
            std::string::npos);
  EXPECT_NE(price_complaint(kHead + "H100,east,2026-01-01,on_demand,3,,,,\n", {.gpu = "H100"})
                .find("has no source"),
            std::string::npos);
  EXPECT_NE(price_complaint(kHead + "H100,east,2026-01-01,spot,3,,,,list\n", {.gpu = "H100"})
                .find("interruptions"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
