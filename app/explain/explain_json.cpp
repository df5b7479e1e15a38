#include <nlohmann/json.hpp>

#include "app/explain/explain_text.h"
#include "sim/report/analysis/rank_list.h"

namespace tessera {
namespace {

using StoryJson = nlohmann::ordered_json;

constexpr const char* kStorySchema = "tessera.step_story/1";

double part_of(Seconds part, Seconds whole) {
  return whole.value() > 0 ? part / whole : 0.0;
}

StoryJson json_of(const ClassTime& entry, Seconds step_time) {
  return {{"class", label_of(entry.time_class)},
          {"part", entry.part.empty() ? StoryJson() : StoryJson(entry.part)},
          {"seconds", entry.time.value()},
          {"share", part_of(entry.time, step_time)}};
}

StoryJson json_of(const std::vector<ClassTime>& times, Seconds step_time) {
  StoryJson list = StoryJson::array();
  for (const ClassTime& entry : times) list.push_back(json_of(entry, step_time));
  return list;
}

StoryJson ranks_json(const StepStory& story) {
  StoryJson ranks = StoryJson::array();
  for (const RankStory& rank : story.ranks)
    ranks.push_back({{"rank", rank.rank},
                     {"stage", rank.stage},
                     {"stands_for", rank.ranks.size()},
                     {"ranks", rank_list(rank.ranks)},
                     {"classes", json_of(rank.times, story.step_time)}});
  return ranks;
}

std::string_view label_of(PathPieceKind kind) {
  switch (kind) {
    case PathPieceKind::kernels:
      return "kernels";
    case PathPieceKind::collective:
      return "collective";
    case PathPieceKind::message:
      return "message";
    case PathPieceKind::copy:
      return "copy";
    case PathPieceKind::memory:
      return "memory";
    case PathPieceKind::host:
      return "host";
    case PathPieceKind::unexplained:
      break;
  }
  return "unexplained";
}

StoryJson path_json(const StepStory& story) {
  StoryJson ops = StoryJson::array();
  for (const PathOp& op : story.path_ops)
    ops.push_back({{"class", label_of(op.time_class)},
                   {"name", op.name},
                   {"seconds", op.time.value()},
                   {"share", part_of(op.time, story.step_time)},
                   {"count", op.count}});
  StoryJson pieces = StoryJson::array();
  for (const PathPiece& piece : story.path)
    pieces.push_back({{"kind", label_of(piece.kind)},
                      {"rank", piece.rank},
                      {"op", piece.op},
                      {"begin_s", piece.begin.value()},
                      {"end_s", piece.end.value()}});
  return {{"classes", json_of(story.path_times, story.step_time)},
          {"ops", std::move(ops)},
          {"pieces", std::move(pieces)}};
}

StoryJson sensitivities_json(const std::vector<Sensitivity>& sensitivities) {
  StoryJson list = StoryJson::array();
  for (const Sensitivity& entry : sensitivities)
    list.push_back({{"resource", label_of(entry.resource)},
                    {"meaning", meaning_of(entry.resource)},
                    {"factor", entry.factor},
                    {"step_time_s", entry.step_time.value()},
                    {"elasticity", entry.elasticity}});
  return list;
}

StoryJson story_definitions() {
  StoryJson definitions;
  for (int i = 0; i < kTimeClassCount; ++i) {
    const auto time_class = static_cast<TimeClass>(i);
    definitions[std::string(label_of(time_class))] = definition_of(time_class);
  }
  definitions["critical_path"] = kCriticalPathDefinition;
  definitions["elasticity"] = kElasticityDefinition;
  return definitions;
}

}  // namespace

std::string explanation_json(const StepExplanation& explanation) {
  const Provenance& provenance = explanation.provenance;
  const StoryJson document{{"schema", kStorySchema},
                           {"scenario", provenance.scenario},
                           {"model", provenance.model},
                           {"mode", provenance.mode},
                           {"gpu", explanation.gpu},
                           {"gpus", explanation.gpus},
                           {"step_time_s", explanation.story.step_time.value()},
                           {"bound_by", label_of(bound_by(explanation.story))},
                           {"ranks", ranks_json(explanation.story)},
                           {"critical_path", path_json(explanation.story)},
                           {"sensitivities", sensitivities_json(explanation.sensitivities)},
                           {"tessera_version", provenance.tessera_version},
                           {"definitions", story_definitions()}};
  return document.dump(2, ' ', false, StoryJson::error_handler_t::replace) + '\n';
}

}  // namespace tessera
