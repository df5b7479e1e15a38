#include "workloads/parallel/cost_split.h"

#include <cstdint>

namespace tessera {
namespace {

/// nanotron's pipeline blocks, in the order of the model.
enum class Piece { embedding, layer, norm, logits, cast, loss };

struct PlacedPiece {
  Piece piece = Piece::embedding;
  int stage = 0;
};

std::int64_t cost_of(Piece piece, const ModelSpec& model) {
  if (piece == Piece::layer)
    return 4 * model.heads * model.head_dim * model.hidden + 3 * model.ffn * model.hidden;
  return piece == Piece::logits ? model.vocab * model.hidden : 0;
}

std::vector<PlacedPiece> placed_pieces(const ModelSpec& model, int stages, bool past_share) {
  std::vector<PlacedPiece> pieces{{Piece::embedding}};
  pieces.resize(1 + static_cast<std::size_t>(model.layers), {Piece::layer});
  for (const Piece end : {Piece::norm, Piece::logits, Piece::cast, Piece::loss})
    pieces.push_back({end});
  std::int64_t all = 0;
  for (const PlacedPiece& piece : pieces) all += cost_of(piece.piece, model);
  std::int64_t sum = 0;
  int stage = 0;
  for (PlacedPiece& piece : pieces) {
    piece.stage = stage;
    sum += cost_of(piece.piece, model);
    const double share = static_cast<double>(all) * ((stage + 1.0) / stages);
    const auto reached = static_cast<double>(sum);
    const bool full = past_share ? reached > share : reached >= share;
    if (full && stage + 1 < stages) ++stage;
  }
  return pieces;
}

/// With the loss: steps that end on a stage of its own take no longer where that lies on another
/// node, although logits of 1 to 4 GB a micro-batch would
/// (docs/decisions/0094-what-a-call-takes.md). Whether anything moved.
bool keep_head_with_loss(std::vector<PlacedPiece>& pieces) {
  bool moved = false;
  for (PlacedPiece& piece : pieces) {
    const bool is_head = piece.piece != Piece::embedding && piece.piece != Piece::layer;
    if (!is_head || piece.stage == pieces.back().stage) continue;
    piece.stage = pieces.back().stage;
    moved = true;
  }
  return moved;
}

int stage_of(Piece wanted, const std::vector<PlacedPiece>& pieces) {
  for (const PlacedPiece& piece : pieces) {
    if (piece.piece == wanted) return piece.stage;
  }
  return -1;
}

}  // namespace

bool uses_cost_split(const StepOptions& step) {
  const StageSplit& split = step.split;
  const bool stated = !split.layers_per_stage.empty() || split.first_stage_layers > 0 ||
                      split.last_stage_layers > 0 || split.embedding_as_layer ||
                      split.head_as_layer;
  return step.framework.split_by_cost && !stated && step.layout.pipeline > 1 &&
         step.layout.virtual_stages == 1;
}

std::optional<CostSplit> split_by_cost(const ModelSpec& model, int stages, bool past_share) {
  std::vector<PlacedPiece> pieces = placed_pieces(model, stages, past_share);
  const bool moved = !past_share && keep_head_with_loss(pieces);
  const int logits = stage_of(Piece::logits, pieces);
  const int loss = stage_of(Piece::loss, pieces);
  const bool together = stage_of(Piece::norm, pieces) == logits &&
                        stage_of(Piece::cast, pieces) == loss && loss == stages - 1;
  if (!together) return std::nullopt;
  CostSplit split;
  split.loss_apart = loss != logits;
  split.head_moved = moved;
  split.blocks.resize(static_cast<std::size_t>(stages));
  split.layers.resize(static_cast<std::size_t>(stages));
  for (const PlacedPiece& piece : pieces) {
    const auto stage = static_cast<std::size_t>(piece.stage);
    const bool layer = piece.piece == Piece::layer;
    const bool block = layer || piece.piece == Piece::embedding || piece.piece == Piece::logits ||
                       (piece.piece == Piece::loss && split.loss_apart);
    split.layers[stage] += layer ? 1 : 0;
    split.blocks[stage] += block ? 1 : 0;
  }
  for (const int blocks : split.blocks) {
    if (blocks == 0) return std::nullopt;
  }
  return split;
}

}  // namespace tessera
