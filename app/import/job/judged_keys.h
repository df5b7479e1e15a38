#pragma once

#include <span>
#include <string_view>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"

namespace tessera {

/// What a program's files may say.
struct KeyTable {
  std::span<const std::string_view> read;      ///< what its importer asks for, by name
  std::span<const std::string_view> harmless;  ///< no step depends on them, by how they begin
  std::span<const UsualValue> rules;           ///< not simulated, unless they have this value
};

/// Judges what nobody has asked `in` for: listed with its place where no step depends on it, else a
/// problem, or an approximation where `options` are lenient. A name that is not known gets the
/// nearest one that is.
void judge_keys(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                const KeyTable& table);

}  // namespace tessera
