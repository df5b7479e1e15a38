// What a launch script says, without running it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/shell/shell_arithmetic.h"
#include "app/import/shell/shell_words.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ShellScript script_of(const std::string& text, const ShellSettings& settings = {}) {
  return read_shell_script(text, "job.sh", settings);
}

/// Words of the only command that `text` runs.
std::vector<std::string> words_of(const std::string& text, const ShellSettings& settings = {}) {
  const ShellScript script = script_of(text, settings);
  std::vector<std::string> words;
  if (script.commands.size() != 1) return {"commands: " + std::to_string(script.commands.size())};
  for (const ShellWord& word : script.commands.front().words) words.push_back(word.text);
  return words;
}

std::string value_of(const std::string& text, const std::string& variable,
                     const ShellSettings& settings = {}) {
  const ShellScript script = script_of(text, settings);
  if (script.undecided.contains(variable)) return "undecided: " + script.undecided.at(variable);
  const auto found = script.variables.find(variable);
  if (found == script.variables.end()) return "unset";
  std::string all;
  for (const std::string& value : found->second) all += (all.empty() ? "" : "|") + value;
  return all;
}

TEST(ShellScript, TakesTheBranchWhoseConditionIsKnown) {
  const std::string text =
      "SIZE=7B\nif [ $SIZE = 70B ]; then\n  L=80\nelif [[ ${SIZE} == 7B ]]; then\n  L=32\n"
      "elif [ $SIZE = 13B ]; then L=40\nelse\n  L=1\nfi\n";
  EXPECT_EQ(value_of(text, "L"), "32");
  EXPECT_EQ(value_of(text, "L", {.defined = {{"SIZE", {"13B"}}}}), "40");
  EXPECT_EQ(value_of(text, "L", {.defined = {{"SIZE", {"1B"}}}}), "1");
}

TEST(ShellScript, WhatAnUndecidedConditionSetsIsUndecided) {
  const std::string text = "A=1\nif [ $SIZE = 7B ]; then L=32; B=2; else L=80; B=2; fi\n";
  EXPECT_EQ(value_of(text, "L"), "undecided: $SIZE (job.sh:2)");
  EXPECT_EQ(value_of(text, "B"), "2");  // both ways agree
  EXPECT_EQ(value_of(text, "A"), "1");
  EXPECT_EQ(value_of("L=8\nif [ -f /data/x ]; then L=9; fi\n", "L"),
            "undecided: the file /data/x (job.sh:2)");
  EXPECT_EQ(value_of("L=8\nif grep -q x y; then L=9; fi\n", "L"),
            "undecided: what a program answers (job.sh:2)");
  EXPECT_EQ(value_of("if [ $X = 1 ]; then L=9; fi\nL=4\n", "L"), "4");
}

TEST(ShellScript, AnUndecidedWayThatEndsTheScriptIsNone) {
  EXPECT_EQ(value_of("L=8\nif [ ! -d /data ]; then L=9; exit 1; fi\n", "L"), "8");
  EXPECT_EQ(value_of("L=8\n[ -d $DATA ] || exit 1\nM=$L\n", "M"), "8");
}

TEST(ShellScript, UnsetVariablesAreEmptyWhereDefaultsAreAskedFor) {
  EXPECT_EQ(value_of("if [ -z \"$TP\" ]; then TP=4; fi\n", "TP"), "4");
  EXPECT_EQ(value_of("if [ -z \"$TP\" ]; then TP=4; fi\n", "TP", {.defined = {{"TP", {"2"}}}}),
            "2");
  EXPECT_EQ(value_of("X=${TP:-8}", "X"), "8");
  EXPECT_EQ(value_of("X=a$TP", "X"), "a$TP");
}

TEST(ShellScript, DefaultsThatAreAssignedStay) {
  EXPECT_EQ(value_of(": \"${TP:=4}\"\nX=${TP:-8}\n", "X"), "4");
  EXPECT_EQ(value_of(": ${TP=4}\nX=$TP\n", "X"), "4");
  EXPECT_EQ(value_of("TP=2\n: ${TP:=4}\nX=$TP\n", "X"), "2");
  EXPECT_EQ(value_of(": ${TP:=4}\nX=$TP\n", "X", {.defined = {{"TP", {"8"}}}}), "8");
}

TEST(ShellScript, DefinitionsHoldWhateverTheScriptSets) {
  const ShellSettings settings{.defined = {{"TP", {"8"}}}};
  EXPECT_EQ(value_of("TP=2\nX=$((TP * 2))\n", "X", settings), "16");
  EXPECT_EQ(value_of("export TP=2\nfor TP in 1 2; do X=$TP; done\n", "X", settings), "8");
}

TEST(ShellScript, ArgumentsOfTheScript) {
  const ShellSettings settings{.arguments = {"7B", "4"}};
  EXPECT_THAT(words_of("run --size $1 --tp ${2:-1} --pp ${3:-2} \"$@\"", settings),
              ElementsAre("run", "--size", "7B", "--tp", "4", "--pp", "2", "7B", "4"));
  EXPECT_EQ(value_of("while [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2;; *) shift;; esac; "
                     "done",
                     "TP", {.arguments = {"--x", "--tp", "4"}}),
            "4");
  EXPECT_THAT(words_of("run --path $1 $@"), ElementsAre("run", "--path", "$1"));
  EXPECT_EQ(value_of("if [ $# -lt 1 ]; then exit 1; fi; X=1", "X"), "unset");
}

TEST(ShellScript, CasesMatchPatterns) {
  const std::string text =
      "case $M in\n  7b|7B) L=32 ;;\n  llama-*-70b)\n    L=80\n    ;;\n  *) echo no; exit 1 ;;\n"
      "esac\n";
  EXPECT_EQ(value_of("M=7B\n" + text, "L"), "32");
  EXPECT_EQ(value_of("M=llama-3-70b\n" + text, "L"), "80");
  EXPECT_EQ(value_of(text, "L"), "undecided: $M (job.sh:1)");
}

TEST(ShellScript, ArraysGrowAndKeepTheirValues) {
  EXPECT_EQ(value_of("A=(1 \"two words\")\nA+=(3)\nB=${#A[@]}${A[1]}\n", "B"), "3two words");
  EXPECT_THAT(words_of("A=(--x \"a b\")\nrun \"${A[@]}\" ${A[@]}"),
              ElementsAre("run", "--x", "a b", "--x", "a", "b"));
  EXPECT_EQ(value_of("A=x\nA+=y\n", "A"), "xy");
  EXPECT_EQ(value_of("declare -A L=([7B]=32 [70B]=80)\nS=70B\nX=${L[$S]}\n", "X"), "80");
}

TEST(ShellScript, CommentsEndACommandEvenBetweenContinuedLines) {
  const ShellScript script = script_of("run --a 1 \\\n  # --b 2 \\\n  --c 3\n");
  ASSERT_EQ(script.commands.size(), 2U);
  EXPECT_EQ(script.commands[1].words.front().text, "--c");
  EXPECT_EQ(script.commands[1].words.front().line, 3);
}

TEST(ShellScript, RedirectionsAndPipesAreNoWords) {
  EXPECT_THAT(words_of("run --bf16 > log.txt 2>&1 < /dev/null &> x"), ElementsAre("run", "--bf16"));
  const ShellScript script = script_of("run --bf16 2>&1 | tee log\nnext &\nwait\n");
  EXPECT_EQ(script.commands.size(), 4U);
}

TEST(ShellScript, HeredocsAreTextsNotCommands) {
  const ShellScript script = script_of(
      "STAGE=1\ncat <<EOF > ds.json\n{\"stage\": $STAGE, \"it's\": 1}\nEOF\ncat > raw <<'END'\n"
      "$STAGE\nEND\nrun\n");
  EXPECT_EQ(script.files.at("ds.json"), "{\"stage\": 1, \"it's\": 1}\n");
  EXPECT_EQ(script.files.at("raw"), "$STAGE\n");
  EXPECT_EQ(script.commands.back().words.front().line, 8);
}

TEST(ShellScript, FunctionsRunWhereTheyAreCalled) {
  const std::string text =
      "launch() {\n  local tp=$1\n  run --tp $tp\n}\nfunction sizes { L=$1; }\nsizes 32\nlaunch "
      "4\n";
  EXPECT_EQ(value_of(text, "L"), "32");
  EXPECT_THAT(words_of(text), ElementsAre("run", "--tp", "4"));
}

TEST(ShellScript, LoopsRunTheirRounds) {
  EXPECT_EQ(value_of("N=0\nfor i in 1 2 3; do N=$((N + i)); done\n", "N"), "6");
  EXPECT_EQ(value_of("N=1\nwhile [ $N -lt 10 ]; do N=$((N * 2)); done\n", "N"), "16");
  EXPECT_EQ(value_of("for i in 1 2 3; do if [ $i = 2 ]; then break; fi; N=$i; done\n", "N"), "1");
  EXPECT_THAT(value_of("N=1; for ((i=0; i<3; i++)); do N=$i; done\n", "N"), HasSubstr("undecided"));
}

TEST(ShellScript, CommandsWithinWordsAreReadWithTheWordsAheadOfThem) {
  EXPECT_THAT(words_of("TP=2\nsrun -N 2 bash -c \"python train.py --tp $TP --x 'a b'\""),
              ElementsAre("srun", "-N", "2", "bash", "-c", "python", "train.py", "--tp", "2", "--x",
                          "a b"));
  EXPECT_THAT(words_of("C=\"torchrun train.py --tp 2\"\neval $C"),
              ElementsAre("torchrun", "train.py", "--tp", "2"));
}

TEST(ShellScript, ParametersAreCutReplacedAndCounted) {
  const std::string start = "A=llama3-8b.yaml\n";
  EXPECT_EQ(value_of(start + "X=${A%.yaml}", "X"), "llama3-8b");
  EXPECT_EQ(value_of(start + "X=${A##*-}", "X"), "8b.yaml");
  EXPECT_EQ(value_of(start + "X=${A/llama/Llama}", "X"), "Llama3-8b.yaml");
  EXPECT_EQ(value_of(start + "X=${A:0:5}", "X"), "llama");
  EXPECT_EQ(value_of(start + "X=${A^^}", "X"), "LLAMA3-8B.YAML");
  EXPECT_EQ(value_of(start + "X=${A:+set}${B:+set}", "X"), "set");
  EXPECT_EQ(value_of("X=$(expr 4 \\* 8)$(echo a b)", "X"), "32a b");
}

TEST(ShellScript, WhatDoesNotEndIsRefusedAtItsStart) {
  for (const std::string text : {"A=1\nif [ 1 = 1 ]; then\n B=2\n", "A=1\nfor i in 1; do x\n",
                                 "A=1\nB='x\n", "A=1\ncase x in y) z\n", "A=1\nB=(x\n"}) {
    try {
      script_of(text);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problems().front().where, "job.sh:2") << text;
    }
  }
}

TEST(ShellScript, NothingGrowsOrRunsWithoutBound) {
  EXPECT_THROW(script_of("A=xxxxxxxxxxxxxxxx\nwhile true; do A=$A$A; done"), InputError);
  EXPECT_THROW(script_of("f() { f; }\nf"), InputError);
  EXPECT_NO_THROW(script_of("while true; do sleep 1; done"));
}

TEST(ShellScript, UnknownTextsNameTheirVariables) {
  EXPECT_THAT(unknown_variables("${TP}x$PP $((A * B))"), ElementsAre("TP", "PP", "A", "B"));
  EXPECT_THAT(unknown_variables("plain"), IsEmpty());
  EXPECT_TRUE(is_unknown("$(nvidia-smi -L | wc -l)"));
  EXPECT_FALSE(is_unknown("5$ and 1"));
}

TEST(ShellArithmetic, OperatorsOfTheShell) {
  const auto value = [](const std::string& text) {
    return shell_arithmetic(text, [](const std::string& name) { return name == "N" ? "6" : ""; })
        .value_or(-999);
  };
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("2 * 2 ** 3"), 16);
  EXPECT_EQ(value("-N + 8"), 2);
  EXPECT_EQ(value("N > 4 && N != 7"), 1);
  EXPECT_EQ(value("N <= 4 ? 10 : 20"), 20);
  EXPECT_EQ(value("!(N == 6)"), 0);
  EXPECT_EQ(value("7 / 0"), -999);
  EXPECT_EQ(value("M + 1"), -999);
}

}  // namespace
}  // namespace tessera
