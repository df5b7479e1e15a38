#include "lab/validate/host_calibration.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

struct HostRow {
  const char* field;  ///< of HostTable
  const char* what;
  const HostCallCost& cost;
};

std::array<HostRow, 4> host_rows(const HostTrace& trace) {
  return {{{"per_call", "framework calls", trace.operators},
           {"per_compiled_call", "compiled launches", trace.compiled},
           {"per_communication", "collectives", trace.collectives},
           {"per_message", "sends and receives", trace.messages}}};
}

/// To the nanosecond, as traces have it.
Seconds rounded(Seconds time) {
  return Seconds(std::round(time.value() * 1e9) * 1e-9);
}

double microseconds(Seconds time) {
  return time.value() * 1e6;
}

}  // namespace

HostTable host_table_of(const HostTrace& trace) {
  HostTable host;
  host.per_call = rounded(trace.operators.mean);
  host.per_compiled_call = rounded(trace.compiled.mean);
  host.per_communication = rounded(trace.collectives.mean);
  host.per_message = rounded(trace.messages.mean);
  return host;
}

std::string host_calibration_table(const HostTable& host, const HostTrace& trace) {
  std::string text =
      text_line("%s: host time from each call to the next of its thread", host.source.c_str());
  text += text_line("%-20s %10s %10s %10s  %s", "calls", "number", "mean us", "median us",
                    "field of training.host");
  for (const HostRow& row : host_rows(trace)) {
    if (row.cost.calls == 0) {
      text += text_line("%-20s %10d %10s %10s  %s stays the framework profile's", row.what, 0, "-",
                        "-", row.field);
      continue;
    }
    text += text_line("%-20s %10lld %10.2f %10.2f  %s", row.what,
                      static_cast<long long>(row.cost.calls), microseconds(row.cost.mean),
                      microseconds(row.cost.median), row.field);
  }
  text += text_line("%lld calls left out, behind which the host waited; %s",
                    static_cast<long long>(trace.waited),
                    trace.steps > 0 ? (std::to_string(trace.steps) + " steps").c_str()
                                    : "no ProfilerStep: all of the trace counts");
  return text;
}

std::string host_calibration_json(const HostTable& host, const HostTrace& trace) {
  nlohmann::ordered_json json{{"schema", "tessera.host_calibration/1"},
                              {"name", host.name},
                              {"cpu", host.cpu},
                              {"source", host.source},
                              {"steps", trace.steps},
                              {"waited", trace.waited}};
  for (const HostRow& row : host_rows(trace)) {
    json[row.field] = {{"calls", row.cost.calls},
                       {"mean_s", row.cost.mean.value()},
                       {"median_s", row.cost.median.value()}};
  }
  return json.dump(2) + "\n";
}

}  // namespace tessera
