#include "app/html/data/timeline_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "app/html/data/palette_data.h"
#include "app/html/data/step_figures.h"
#include "sim/report/palette.h"
#include "sim/trace/timeline_index.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

std::int64_t nanoseconds(Seconds time) {
  return std::llround(time.value() * 1e9);
}

/// "data comm"
std::string stream_words(int stream) {
  std::string words(label_of(static_cast<StreamKind>(stream)));
  std::ranges::replace(words, '_', ' ');
  return words;
}

/// Numbers for texts, in order of their first use.
class Names {
 public:
  int number_of(const std::string& name) {
    const auto [entry, added] = numbers_.try_emplace(name, static_cast<int>(names_.size()));
    if (added) names_.push_back(name);
    return entry->second;
  }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::map<std::string, int> numbers_;
  std::vector<std::string> names_;
};

/// The slices of one stream of one rank.
class RowData {
 public:
  void add(Seconds begin, Seconds end, int kind, int name, int micro_batch) {
    const std::int64_t from = std::max(nanoseconds(begin), at_);
    const std::int64_t until = std::max(nanoseconds(end), from);
    if (until == from) return;
    gaps_.push_back(from - at_);
    lengths_.push_back(until - from);
    kinds_.push_back(kind);
    names_.push_back(name);
    micro_batches_.push_back(micro_batch);
    at_ = until;
  }
  bool empty() const { return gaps_.empty(); }
  PageJson json(const std::string& name) const {
    return {{"name", name},    {"gaps", gaps_},   {"lengths", lengths_},
            {"kinds", kinds_}, {"names", names_}, {"micro_batches", micro_batches_}};
  }

 private:
  std::int64_t at_ = 0;  ///< end of the last slice [ns]
  std::vector<std::int64_t> gaps_;
  std::vector<std::int64_t> lengths_;
  std::vector<int> kinds_;
  std::vector<int> names_;
  std::vector<int> micro_batches_;
};

std::string name_of(const ProgramOp& op, const Program& program) {
  if (op.kind == OpKind::kernels) return program.segment(op.segment).name;
  if (op.kind == OpKind::send) return "send to stage " + std::to_string(op.peer_stage);
  if (op.kind == OpKind::recv) return "receive from stage " + std::to_string(op.peer_stage);
  const std::string bytes = std::to_string(op.bytes.value()) + " B";
  if (!is_collective(op.kind)) return std::string(label_of(op.kind)) + ", " + bytes;
  return std::string(label_of(op.kind)) + " " + std::string(label_of(op.group)) + ", " + bytes +
         " per rank";
}

/// Ranks that fit into the limit: the first one of every stage, then the others.
std::vector<int> chosen_ranks(const TimelineIndex& index, std::size_t limit) {
  std::vector<int> order;
  std::vector<int> others;
  std::map<int, bool> seen;
  for (const auto& [rank, stands_for] : index.simulated())
    (std::exchange(seen[index.position(rank).pipeline], true) ? others : order).push_back(rank);
  order.insert(order.end(), others.begin(), others.end());
  std::vector<int> chosen;
  std::size_t slices = 0;
  for (const int rank : order) {
    slices += 2 * index.records_of(rank).size();  // a wait and a run each
    if (slices > limit && !chosen.empty()) break;
    chosen.push_back(rank);
  }
  std::ranges::sort(chosen);
  return chosen;
}

/// Kernels of a segment: what the click on a slice shows.
PageJson story_of_segment(const TimedProgram& timed, std::size_t segment) {
  PageJson rows = PageJson::array();
  const TimedSegment& times = timed.segments[segment];
  const std::vector<KernelLaunch>& kernels = timed.program.segments[segment].kernels;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = kernels[k].kernel;
    PageJson tile, waves, utilization;
    if (k < times.kernels.size() && times.kernels[k] < timed.kernels.size()) {
      const KernelPrediction& prediction = timed.kernels[times.kernels[k]].prediction;
      if (prediction.tile_m > 0) {
        tile = std::to_string(prediction.tile_m) + " x " + std::to_string(prediction.tile_n);
        waves = prediction.waves;
      }
      if (prediction.utilization > 0) utilization = 100 * prediction.utilization;
    }
    rows.push_back({kernels[k].name, label_of(kernel.kind), shape_label(kernel),
                    times.kernel_durations[k].value() * 1e6, tile, waves, utilization});
  }
  return {{"columns", {"kernel", "kind", "shape", "us", "tile", "waves", "% of roofline"}},
          {"rows", std::move(rows)}};
}

/// Fills the rows of a timeline.
class TimelineData {
 public:
  TimelineData(const TimedProgram& timed, const TimelineIndex& index)
      : timed_(timed), index_(index) {}

  void add_rank(int rank) {
    std::array<RowData, kStreamCount> rows;
    const std::vector<ProgramOp>& ops = index_.program_of(rank).ops;
    for (const OpRecord& record : index_.records_of(rank)) {
      const ProgramOp& op = ops[static_cast<std::size_t>(record.op)];
      RowData& row = rows[static_cast<std::size_t>(op.stream)];
      const int name = names_.number_of(name_of(op, timed_.program));
      const Seconds active = active_since(rank, op, record);
      row.add(record.start, active, static_cast<int>(TimeCategory::other_idle), name,
              op.micro_batch);
      row.add(active, record.end, static_cast<int>(class_of(op)), name, op.micro_batch);
      if (op.kind == OpKind::kernels) used_segments_.insert_or_assign(name, op.segment);
    }
    for (int stream = 0; stream < kStreamCount; ++stream) {
      const RowData& row = rows[static_cast<std::size_t>(stream)];
      if (row.empty()) continue;
      row_of_[{rank, stream}] = static_cast<int>(list_.size());
      list_.push_back(row.json("GPU " + std::to_string(rank) + " " + stream_words(stream)));
    }
  }

  PageJson path_json(const std::vector<PathPiece>& path) const {
    std::vector<double> begin, end;
    std::vector<int> rows;
    for (const PathPiece& piece : path) {
      const auto& op =
          index_.program_of(piece.rank).ops[static_cast<std::size_t>(std::max(piece.op, 0))];
      const auto row = row_of_.find({piece.rank, static_cast<int>(op.stream)});
      begin.push_back(piece.begin.value());
      end.push_back(piece.end.value());
      rows.push_back(row == row_of_.end() ? -1 : row->second);
    }
    return {{"begin", begin}, {"end", end}, {"row", rows}};
  }

  PageJson stories() const {
    PageJson stories = PageJson::object();
    for (const auto& [name, segment] : used_segments_)
      stories[names_.all()[static_cast<std::size_t>(name)]] =
          story_of_segment(timed_, static_cast<std::size_t>(segment.index()));
    return stories;
  }
  PageJson take_rows() { return std::move(list_); }
  const std::vector<std::string>& names() const { return names_.all(); }

 private:
  /// Since when it does what it is there for, instead of waiting for peers.
  Seconds active_since(int rank, const ProgramOp& op, const OpRecord& record) const {
    if (op.kind == OpKind::kernels || op.kind == OpKind::send) return record.start;
    if (is_collective(op.kind)) return record.transfer_start;
    if (op.kind != OpKind::recv) return record.start;
    const auto send = index_.send_of(rank, op);
    return send ? std::clamp(send->record.start, record.start, record.end) : record.start;
  }

  const TimedProgram& timed_;
  const TimelineIndex& index_;
  Names names_;
  std::map<int, SegmentId> used_segments_;  ///< by number of the name
  std::map<std::pair<int, int>, int> row_of_;
  PageJson list_ = PageJson::array();
};

}  // namespace

PageJson timeline_data(const TimedProgram& timed, const Timeline& timeline,
                       const std::vector<PathPiece>& path, const StepPageLimits& limits) {
  const TimelineIndex index(timed, timeline);
  const std::vector<int> ranks = chosen_ranks(index, limits.slices);
  TimelineData data(timed, index);
  for (const int rank : ranks) data.add_rank(rank);
  PageJson json{{"step_time_s", timeline.step_time.value()}};
  json.update(palette_data("kinds"));
  json["path"] = data.path_json(path);
  json["stories"] = data.stories();
  json["names"] = data.names();
  json["rows"] = data.take_rows();
  if (static_cast<int>(ranks.size()) < index.ranks()) {
    const bool all_simulated = ranks.size() == index.simulated().size();
    json["note"] =
        "shown: " + std::to_string(ranks.size()) + " of " + std::to_string(index.ranks()) +
        (all_simulated ? " GPUs; the others do the same"
                       : " GPUs, the first of every pipeline stage among them; --trace writes "
                         "them all");
  }
  return json;
}

}  // namespace tessera
