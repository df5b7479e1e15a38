#include "hw/units/plain_text.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(PlainText, WhatATerminalObeysIsShown) {
  EXPECT_EQ(without_control_characters("a\x1b[31mb"), "a\\u001b[31mb");
  EXPECT_EQ(without_control_characters("\r\x07\x7f"), "\\u000d\\u0007\\u007f");
  EXPECT_EQ(without_control_characters("\xC2\x9B"), "\\u009b");      // CSI in one character
  EXPECT_EQ(without_control_characters("\xE2\x80\xAE"), "\\u202e");  // right to left
  EXPECT_EQ(without_control_characters("\xE2\x81\xA6x"), "\\u2066x");
}

TEST(PlainText, OtherTextStaysAsItIs) {
  for (const char* text :
       {"", "line\n\ttab", "naïve 模型 🦎", "\xC2\xA0", "\xE2\x80\x94", "\xE2\x80"}) {
    EXPECT_EQ(without_control_characters(text), text);
    EXPECT_FALSE(holds_control_character(text));
  }
  EXPECT_TRUE(holds_control_character(std::string_view("a\0b", 3)));
}

TEST(SpreadsheetCell, FormulasAreText) {
  EXPECT_EQ(spreadsheet_cell("=1+1"), "'=1+1");
  EXPECT_EQ(spreadsheet_cell("+SUM(A1)"), "'+SUM(A1)");
  EXPECT_EQ(spreadsheet_cell("-2+3"), "'-2+3");
  EXPECT_EQ(spreadsheet_cell("@cmd"), "'@cmd");
}

TEST(SpreadsheetCell, NumbersAndOtherTextStay) {
  for (const char* text : {"", "-", "-1.5", "+3e-7", "-0", "gpt2", "a=b", "1-2"})
    EXPECT_EQ(spreadsheet_cell(text), text);
}

}  // namespace
}  // namespace tessera
