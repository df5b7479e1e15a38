"""tools/check_layers passes on this repository's layers in small, and finds each kind of violation."""

import unittest

from planted_tree import PlantedTree

LAYERS = """
tessera_library(hw/units)
tessera_library(hw DEPENDS hw/units)
tessera_library(workloads DEPENDS hw/units LIBRARIES nlohmann_json::nlohmann_json)
tessera_library(predictor DEPENDS hw workloads)
tessera_library(sim/config DEPENDS predictor)
tessera_library(sim/engine DEPENDS predictor)
tessera_library(sim/simgrid DEPENDS sim/engine LIBRARIES PkgConfig::SimGrid)
tessera_executable(tessera app/cli DEPENDS sim/config sim/engine LIBRARIES CLI11::CLI11)
"""


class CheckLayers(PlantedTree):
    CHECK = "check_layers"

    def setUp(self):
        super().setUp()
        self.plant("CMakeLists.txt", LAYERS)
        self.plant("tests/CMakeLists.txt", "tessera_test(hw DEPENDS hw)\ntessera_test(sim/engine DEPENDS sim/engine)\n"
                   "tessera_test(sim/simgrid DEPENDS sim/simgrid)\n")
        self.plant("hw/units/quantity.h", "#pragma once\n#include <cstdint>\n")
        self.plant("hw/gpu.h", '#pragma once\n#include "hw/units/quantity.h"\n')
        self.plant("workloads/program/program.h", '#pragma once\n#include "hw/units/quantity.h"\n')

    def test_accepts_includes_of_what_a_target_reaches_over_its_dependencies(self):
        self.plant("sim/simgrid/links.cpp", '#include <simgrid/s4u.hpp>\n\n#include "hw/gpu.h"\n#include "workloads/program/program.h"\n')
        self.plant("tests/sim/simgrid/links_test.cpp", '#include <simgrid/s4u.hpp>\n\n#include "hw/gpu.h"\n')
        self.assert_passes()

    def test_rejects_an_include_of_a_layer_that_is_no_dependency(self):
        self.plant("workloads/graph.cpp", '#include "workloads/program/program.h"\n#include "hw/gpu.h"\n')
        self.assert_finds('workloads/graph.cpp:2: includes "hw/gpu.h" of hw, which is not among the dependencies of workloads')

    def test_rejects_an_upward_include(self):
        self.plant("hw/units/quantity.cpp", '#include "hw/gpu.h"\n')
        self.assert_finds(
            'hw/units/quantity.cpp:1: includes "hw/gpu.h" of hw, which is not among the dependencies of hw/units')

    def test_rejects_a_test_that_reaches_above_what_it_tests(self):
        self.plant("tests/hw/gpu_test.cpp", '#include "workloads/program/program.h"\n')
        self.assert_finds('tests/hw/gpu_test.cpp:1: includes "workloads/program/program.h" of workloads, '
                          'which is not among the dependencies of tests/hw')

    def test_rejects_a_room_that_includes_one_behind_it(self):
        self.plant("sim/engine/clock/clock.h", "#pragma once\n")
        self.plant("sim/engine/device/gpu.h", '#pragma once\n#include "sim/engine/clock/clock.h"\n')
        self.plant("sim/engine/engine.cpp", '#include "sim/engine/device/gpu.h"\n')
        self.assert_passes()
        self.plant("sim/engine/clock/clock.cpp", '#include "sim/engine/device/gpu.h"\n')
        self.assert_finds('sim/engine/clock/clock.cpp:1: includes "sim/engine/device/gpu.h", '
                          'but rooms of sim/engine include only those before them: '
                          'clock, network, folding, communication, memory, device, errors')

    def test_lets_tests_share_helpers_of_the_targets_that_they_reach(self):
        self.plant("tests/workloads/small_program.h", '#pragma once\n#include "workloads/program/program.h"\n')
        self.plant("tests/sim/engine/engine_test.cpp", '#include "tests/workloads/small_program.h"\n')
        self.assert_passes()
        self.plant("tests/hw/gpu_test.cpp", '#include "tests/workloads/small_program.h"\n')
        self.assert_finds('tests/hw/gpu_test.cpp:1: includes "tests/workloads/small_program.h" of workloads, '
                          'which is not among the dependencies of tests/hw')

    def test_rejects_a_dependency_on_a_target_that_is_not_above(self):
        self.plant("CMakeLists.txt", "tessera_library(hw/units DEPENDS hw)\ntessera_library(hw DEPENDS hw/units)\n")
        self.plant("tests/CMakeLists.txt", "")
        self.plant("workloads/program/program.h", "#pragma once\n")
        self.assert_finds("CMakeLists.txt:1: hw/units depends on hw, which is not a target above it")

    def test_rejects_a_library_outside_the_place_that_may_use_it(self):
        cases = {
            "<simgrid/s4u.hpp>": "SimGrid may be used only in sim/simgrid/, sim/engine/oracle/",
            "<yaml-cpp/yaml.h>": "yaml-cpp may be used only in sim/config/",
            "<google/protobuf/message.h>": "Protobuf may be used only in sim/config/, sim/formats/, predictor/[a-z]+/[a-z_]*weights[^/]*$",
            '"predictor/weights.pb.h"': "Protobuf may be used only in sim/config/, sim/formats/, predictor/[a-z]+/[a-z_]*weights[^/]*$",
            "<CLI/CLI.hpp>": "CLI11 may be used only in app/shell/, app/cli/, lab/cli/",
            "<spdlog/spdlog.h>": "spdlog may be used only in app/shell/, app/cli/, lab/cli/",
        }
        for include, rule in cases.items():
            with self.subTest(include):
                self.plant("predictor/model.cpp", f"\n#  include {include}\n")
                self.assert_finds(f"predictor/model.cpp:2: includes {include}, but {rule}")

    def test_lets_the_weights_reader_use_protobuf(self):
        self.plant("predictor/weights/weights_file.cpp", '#include "predictor/weights.pb.h"\n')
        self.assert_passes()

    def test_rejects_an_include_that_is_not_written_from_the_root(self):
        self.plant("hw/gpu.cpp", '#include "gpu.h"\n')
        self.assert_finds('hw/gpu.cpp:1: includes "gpu.h", which is no file of the repository; write the path from the root')

    def test_rejects_a_source_file_that_no_target_owns(self):
        self.plant("sim/stray.cpp", "\n")
        self.assert_finds("sim/stray.cpp:1: lies in no target of CMakeLists.txt")

    def test_fails_where_there_is_nothing_to_check(self):
        self.plant("CMakeLists.txt", "")
        self.plant("tests/CMakeLists.txt", "")
        self.assertEqual(self.run_check().returncode, 1)


if __name__ == "__main__":
    unittest.main()
