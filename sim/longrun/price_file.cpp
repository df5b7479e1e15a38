#include "sim/longrun/price_file.h"

#include <cstddef>
#include <optional>
#include <set>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

/// Fields of a line by the names of their columns.
class PriceLine {
 public:
  PriceLine(const CsvTable& table, const CsvTable::Row& row) : table_(table), row_(row) {}

  std::string text(const char* column) const {
    const auto found = table_.column(column);
    return found ? row_.fields[*found] : "";
  }
  /// 0 where nothing is said.
  template <class Parse>
  auto parsed(const char* column, Parse parse) const -> decltype(parse(std::string())) {
    const std::string value = text(column);
    if (value.empty()) return {};
    try {
      return parse(value);
    } catch (const InputError& error) {
      const Problem& problem = error.problems().front();
      throw InputError(
          {table_.where(row_), std::string(column) + " = " + problem.what, problem.hint});
    }
  }
  std::string where() const { return table_.where(row_); }

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
};

void need_columns(const CsvTable& table) {
  for (const char* name : {"gpu", "region", "date", "dollars_per_hour", "source"}) {
    if (!table.column(name))
      throw InputError({table.file.string(), std::string("has no column ") + name,
                        "prices have gpu, region, date, dollars_per_hour and source"});
  }
}

bool is_date(const std::string& text) {
  const std::string shape = "dddd-dd-dd";
  if (text.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != shape[i]) return false;
  }
  return true;
}

bool is_spot(const PriceLine& line) {
  const std::string kind = line.text("kind");
  if (kind != "" && kind != "spot" && kind != "on_demand")
    throw InputError({line.where(), "kind is " + kind, "write spot or on_demand"});
  return kind == "spot";
}

GpuPrice price_of(const PriceLine& line) {
  GpuPrice price{.dollars_per_hour = line.parsed("dollars_per_hour", parse_ratio),
                 .spot = is_spot(line),
                 .region = line.text("region"),
                 .date = line.text("date"),
                 .source = line.text("source"),
                 .interruptions_per_1000_node_days =
                     line.parsed("interruptions_per_1000_node_days", parse_ratio),
                 .notice = line.parsed("notice", parse_seconds),
                 .replacement = line.parsed("replacement", parse_seconds)};
  if (!(price.dollars_per_hour > 0))
    throw InputError({line.where(), "has no price", "write dollars_per_hour above 0"});
  if (!is_date(price.date))
    throw InputError({line.where(), "date is " + price.date, "write YYYY-MM-DD"});
  if (price.source.empty())
    throw InputError({line.where(), "has no source", "say where the price comes from"});
  if (price.spot && (price.interruptions_per_1000_node_days <= 0 || price.replacement.value() <= 0))
    throw InputError({line.where(), "is a spot price without interruptions or replacement",
                      "say interruptions_per_1000_node_days, and replacement as 15min"});
  return price;
}

std::string asked(const PriceQuery& query) {
  return query.gpu + (query.spot ? ", spot" : "") +
         (query.region.empty() ? "" : ", in " + query.region) +
         (query.date.empty() ? "" : ", by " + query.date);
}

}  // namespace

std::string GpuPrice::text() const {
  return region + ", " + date + (spot ? ", spot" : "") + " (" + source + ")";
}

GpuPrice read_price(const std::filesystem::path& file, const PriceQuery& query) {
  if (!query.date.empty() && !is_date(query.date))
    throw InputError({"--price-date", "is " + query.date, "write YYYY-MM-DD"});
  const CsvTable table = read_csv(file);
  need_columns(table);
  std::optional<GpuPrice> best;
  std::set<std::string> regions;
  for (const CsvTable::Row& row : table.rows) {
    const PriceLine line(table, row);
    const GpuPrice price = price_of(line);
    if (line.text("gpu") != query.gpu || price.spot != query.spot) continue;
    if (!query.region.empty() && price.region != query.region) continue;
    if (!query.date.empty() && price.date > query.date) continue;
    regions.insert(price.region);
    if (!best || price.date > best->date) best = price;
  }
  if (!best)
    throw InputError({file.string(), "has no price of " + asked(query),
                      "add a line with its gpu, region, date, dollars_per_hour and source"});
  if (regions.size() > 1)
    throw InputError(
        {file.string(),
         "has prices of " + asked(query) + " in " + std::to_string(regions.size()) + " regions",
         "give --region " + *regions.begin()});
  return *best;
}

FailureClass interruptions_of(const GpuPrice& price) {
  FailureClass of{.name = "spot interruption", .component = Component::host};
  of.per_node_day = price.interruptions_per_1000_node_days / 1000;
  of.repair = price.replacement;
  of.source = price.source;
  return of;
}

}  // namespace tessera
