#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "app/html/page_source.h"

namespace tessera {

using Json = nlohmann::ordered_json;

/// A name that would be markup where it is not taken for data.
inline constexpr const char* kAttack = "</script><img src=x onerror=alert(1)><!--<script>&amp;\"'";

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

inline Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

/// The page without the chart library, whose text is not ours: namespaces and licences hold
/// addresses.
inline std::string own_part_of(const std::string& page) {
  const std::string library = "<script>" + std::string(kChartLibrary.text) + "</script>\n";
  const std::size_t at = kChartLibrary.text.empty() ? std::string::npos : page.find(library);
  return at == std::string::npos ? page : page.substr(0, at) + page.substr(at + library.size());
}

/// Nothing of the attack is markup, and nothing of the page asks for anything.
inline void expect_inert(const std::string& whole) {
  const std::string page = own_part_of(whole);
  EXPECT_EQ(count_of(page, "<script"), 2);
  EXPECT_EQ(count_of(page, "</script"), 2);
  EXPECT_EQ(count_of(page, "<img"), 0);
  EXPECT_EQ(count_of(page, "<!--"), 0);
  EXPECT_EQ(count_of(page, "://"), 0) << "no address";
  EXPECT_EQ(count_of(page, " src="), count_of(data_of(page).dump(), " src=")) << "data alone";
  EXPECT_EQ(count_of(page, "innerHTML"), 0);
}

}  // namespace tessera
