#include "lab/validate/collectives/score_communication.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "hw/units/input_error.h"
#include "lab/fit/tensor/measured_table.h"
#include "sim/config/load.h"
#include "sim/report/collective_report.h"

namespace tessera {
namespace {

enum Column : std::size_t { kGpu, kLatency };
enum Optional : std::size_t {
  kOp = 2,
  kMode,
  kPhase,
  kRanks,
  kExpertRanks,
  kBytes,
  kTokens,
  kHidden,
  kTopK,
  kDtype
};
const std::vector<std::string> kRequired{"gpu", "latency_us"};
const std::vector<std::string> kOthers{"op",    "mode",       "phase",  "n_gpus", "ep",
                                       "bytes", "num_tokens", "hidden", "top_k",  "dtype"};
constexpr int kUsualNode = 8;  ///< where a file does not say how many ranks there are

struct Row {
  CollectiveCall call;
  int ranks = kUsualNode;
  std::string name;
  std::string predicted_as;
};

double bytes_of_element(std::string_view dtype) {
  if (dtype == "nvfp4") return 0.5 + 1.0 / 16;
  return dtype == "fp8" ? 1 : 2;
}

/// A rank sends a token to every expert's rank but its own, once at most.
std::optional<Bytes> exchanged(MeasuredTable& table, int ranks) {
  const auto tokens = table.extent(kTokens), hidden = table.extent(kHidden),
             top_k = table.extent(kTopK);
  if (!tokens || !hidden || !top_k) return std::nullopt;
  const double copies = std::min(static_cast<double>(*top_k), static_cast<double>(ranks));
  const double bytes = static_cast<double>(*tokens) * static_cast<double>(*hidden) * copies *
                       bytes_of_element(table.text(kDtype));
  if (bytes > 0x1p50) {
    table.problem("the exchange is larger than 2^50 bytes", "no GPU holds it");
    return std::nullopt;
  }
  return Bytes(std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes)));
}

std::optional<int> ranks_of(MeasuredTable& table) {
  for (const Optional column : {kRanks, kExpertRanks}) {
    if (table.text(column).empty()) continue;
    const auto ranks = table.extent(column);
    if (!ranks) return std::nullopt;
    if (*ranks >= 2 && *ranks <= 1024) return static_cast<int>(*ranks);
    table.problem(std::to_string(*ranks) + " ranks", "a collective needs 2 to 1024");
    return std::nullopt;
  }
  return kUsualNode;
}

std::optional<Row> read_row(MeasuredTable& table) {
  Row row;
  const auto ranks = ranks_of(table);
  if (!ranks) return std::nullopt;
  row.ranks = *ranks;
  const std::string op(table.text(kOp));
  if (table.has(kBytes)) {
    const auto bytes = table.extent(kBytes);
    if (!bytes) return std::nullopt;
    if (op != "all_reduce") {
      table.problem("op = '" + op + "' is not known", "all_reduce");
      return std::nullopt;
    }
    row.call.bytes = Bytes(*bytes);
    row.name = "custom all_reduce";
    row.predicted_as = "NCCL's all-reduce";
    return row;
  }
  const auto bytes = exchanged(table, row.ranks);
  if (!bytes) return std::nullopt;
  row.call.kind = CollectiveKind::all_to_all;
  row.call.bytes = *bytes;
  row.name =
      op.empty() ? std::string(table.text(kMode)) + " " + std::string(table.text(kPhase)) : op;
  row.predicted_as = "an even all-to-all of NCCL";
  return row;
}

/// Fabrics by GPU, read once.
class Fabrics {
 public:
  explicit Fabrics(const Catalog& catalog) : catalog_(catalog) {}

  const Topology& of(const std::string& gpu, int ranks) {
    for (const Topology& topology : with(gpu))
      if (topology.gpu_count() >= ranks) return topology;
    throw InputError({.where = "GPU " + gpu,
                      .what = "has no server of " + std::to_string(ranks) + " in the catalog",
                      .hint = "tessera list clusters"});
  }

 private:
  const std::vector<Topology>& with(const std::string& gpu) {
    if (!read_) read();
    return topologies_[gpu];
  }

  void read() {
    read_ = true;
    for (const std::string& id : catalog_.ids(CatalogKind::clusters)) {
      const ClusterSpec cluster = load_cluster(id, catalog_);
      if (cluster.node_count == 1) topologies_[cluster.node.gpu.id].emplace_back(cluster);
    }
  }

  const Catalog& catalog_;
  bool read_ = false;
  std::map<std::string, std::vector<Topology>> topologies_;
};

Seconds alone(const Topology& topology, const Row& row) {
  std::vector<int> ranks(static_cast<std::size_t>(row.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  const CollectiveReport report =
      report_collective(topology, row.call, ranks, CollectiveTuning(CollectiveConstants(), {}));
  return Seconds(static_cast<double>(row.call.bytes.value()) / report.algorithm_bandwidth);
}

std::uint16_t place_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, name);
  const auto place = static_cast<std::uint16_t>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return place;
}

}  // namespace

bool holds_communication(const std::filesystem::path& csv) {
  const MeasuredTable head(
      csv, {},
      {"gpu", "latency_us", "n_gpus", "bytes", "num_tokens", "top_k", "ffn", "phase", "ep"});
  const bool expert = head.has(4) && head.has(5) && !head.has(6) && (head.has(7) || head.has(8));
  return head.has(0) && head.has(1) && ((head.has(2) && head.has(3)) || expert);
}

KernelScores score_communication(const std::filesystem::path& csv, const Catalog& catalog) {
  MeasuredTable table(csv, kRequired, kOthers);
  KernelScores scores{.text = table.file_text(), .header = table.header()};
  Fabrics fabrics(catalog);
  while (table.next()) {
    const std::optional<Row> row = read_row(table);
    const auto seconds = table.optional_microseconds(kLatency);
    if (!row || !seconds) continue;
    const std::string gpu(table.text(kGpu));
    KernelScore& score =
        scores.rows.emplace_back(KernelScore{.line = table.row(),
                                             .gpu = place_of(gpu, scores.gpus),
                                             .group = place_of(row->name, scores.ops),
                                             .measured_us = *seconds * 1e6,
                                             .predicted_as = row->predicted_as,
                                             .skipped = {}});
    try {
      score.predicted_us = alone(fabrics.of(gpu, row->ranks), *row).value() * 1e6;
    } catch (const InputError& error) {
      score.skipped = error.problems().front().text();
    }
  }
  for (const BadRow& row : table.bad_rows())
    scores.rows.push_back({.line = row.line, .predicted_as = {}, .skipped = row.reason});
  finish_scores(scores, csv);
  return scores;
}

}  // namespace tessera
