#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

/// Parts of the product model that a fit can be asked to do without, to see what they buy.
enum class Ingredient : std::uint8_t {
  tile_menu,        ///< tiles other than 128x128
  family_menus,     ///< tile menus that differ between kernel families
  split_k,          ///< split contraction
  whole_waves,      ///< quantisation of waves
  row_distance,     ///< slowdown of operand rows far apart
  alignment,        ///< slowdown of rows off a memory sector
  anomalous_short,  ///< short calls of an anomalous linear session; without: none of its calls
  short_calls,      ///< power-limited cards fitted on calls that end before the limit is felt
};
inline constexpr std::array kIngredients{Ingredient::tile_menu,       Ingredient::family_menus,
                                         Ingredient::split_k,         Ingredient::whole_waves,
                                         Ingredient::row_distance,    Ingredient::alignment,
                                         Ingredient::anomalous_short, Ingredient::short_calls};

constexpr std::string_view name_of(Ingredient ingredient) {
  switch (ingredient) {
    case Ingredient::tile_menu:
      return "tiles other than 128x128";
    case Ingredient::family_menus:
      return "tile menus per kernel family";
    case Ingredient::split_k:
      return "split contraction";
    case Ingredient::whole_waves:
      return "whole waves";
    case Ingredient::row_distance:
      return "rows far apart";
    case Ingredient::alignment:
      return "rows off a sector";
    case Ingredient::anomalous_short:
      return "short calls of the anomalous session";
    case Ingredient::short_calls:
      break;
  }
  return "power-limited cards by short calls";
}

/// At most one ingredient is left out at a time.
using LeftOutIngredient = std::optional<Ingredient>;

}  // namespace tessera
