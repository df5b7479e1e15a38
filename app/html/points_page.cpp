#include "app/html/points_page.h"

#include <algorithm>

#include "app/html/data/provenance_data.h"
#include "app/html/page.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson table_of(const PointsReport& report) {
  PageJson table{{"title", "Points"}, {"columns", {"point"}}, {"rows", PageJson::array()}};
  for (const PointColumn& column : report.columns) table["columns"].push_back(column.name);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    PageJson row = PageJson::array({i + 1});
    for (const PageJson& value : report.rows[i]) row.push_back(value);
    table["rows"].push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string points_page(const PointsReport& report, const std::string& tessera_version) {
  PageJson page{{"title", report.title}, {"summary", PageJson::array()}};
  for (const auto& [name, value] : report.summary)
    page["summary"].push_back({{"name", name}, {"value", value}, {"definition", ""}});
  PageJson columns = PageJson::array();
  for (const PointColumn& column : report.columns)
    columns.push_back({{"name", column.name}, {"better", column.better}, {"input", column.input}});
  page["points"] = {{"title", "Against each other"},
                    {"columns", std::move(columns)},
                    {"rows", report.rows},
                    {"labels", report.labels},
                    {"note", report.note}};
  const auto fits = std::ranges::find(report.columns, report.fits, &PointColumn::name);
  if (!report.fits.empty() && fits != report.columns.end())
    page["points"]["fits"] = fits - report.columns.begin();
  page["tables"] = PageJson::array({table_of(report)});
  page["provenance"] = provenance_data(tessera_version);
  return html_page(page);
}

}  // namespace tessera
