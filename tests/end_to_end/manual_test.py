"""The manual page and the completion scripts know every command, and shells take them."""

import re
import shutil
import subprocess
import unittest

from tessera_command import EndToEnd

# What a user of bash gets for the words in "$@", the last one being completed.
ASK_BASH = """source completion.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_tessera
printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh's own functions print what they would offer; ${funcstack} is empty, so the script asks for compdef.
ASK_ZSH = """compdef() { :; }
compadd() { shift; print -l -- "$@" }
_describe() { print -l -- "${(@)${(@P)2}%%:*}" }
_files() { print FILES }
source completion.zsh
typeset -a words; words=("$@"); CURRENT=$#; PREFIX=$words[-1]
_tessera
"""


def help_options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


class Manual(EndToEnd):
    def paths(self, *path):
        """Every command below `path`, from the lists in `--help`."""
        text = self.answer(*path, "--help")
        names = re.findall(r"(?m)^  ([a-z-]+) ", text.partition("\nSubcommands:\n")[2])
        return [list(path)] + [below for name in names for below in self.paths(*path, name)]

    def page(self):
        return self.answer("manual")

    def test_every_command_and_option_has_a_place(self):
        page = re.sub(r"\\f[BIR]", "", self.page()).replace("\\-", "-")
        sections = dict(re.findall(r"(?ms)^\.SS (tessera [^\n]+)\n(.*?)(?=^\.S)", page))
        paths = self.paths()[1:]
        self.assertGreater(len(paths), 25)
        self.assertEqual(set(sections), {"tessera " + " ".join(path) for path in paths})
        for path in paths:
            options = help_options(self.answer(*path, "--help").partition("Options:\n")[2]) - {"--help"}
            self.assertLessEqual(options, help_options(sections["tessera " + " ".join(path)]), path)

    def test_its_examples_run(self):
        page = re.sub(r"\\f[BIR]", "", self.page()).replace("\\-", "-")
        examples = re.findall(r"(?m)^tessera (.+)$", page.partition(".SH EXAMPLES")[2].partition(".SH EXIT")[0])
        self.assertGreater(len(examples), 5)
        for example in examples:
            if not example.startswith("serve"):
                self.assertEqual(self.run_tessera(*example.split()).returncode, 0, example)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_nothing_but_the_missing_date(self):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=self.page(), capture_output=True,
                              text=True, check=False)
        self.assertEqual([line for line in lint.stdout.splitlines() if "missing date" not in line], [])

    def test_no_line_is_a_request_by_chance(self):
        requests = {line.split()[0] for line in self.page().splitlines() if line.startswith((".", "'"))}
        self.assertEqual(requests, {".TH", ".SH", ".SS", ".PP", ".TP"})


class Completion(EndToEnd):
    def offers(self, shell, script, *words):
        """What `shell` offers for the last of `words`."""
        self.plant(f"completion.{shell}", self.answer("completion", shell))
        command = [shutil.which(shell), *(["--norc"] if shell == "bash" else ["-f"]), "-c", script, shell, *words]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        return set(result.stdout.split())

    def bash(self, *words):
        return self.offers("bash", ASK_BASH, "tessera", *words)

    def test_bash_completes_commands(self):
        self.assertEqual(self.bash("sim"), {"simulate"})
        self.assertEqual(self.bash("plan", "me"), {"memory"})
        self.assertEqual(self.bash("list", "cl"), {"clusters"})

    def test_bash_completes_ids_and_paths_of_fields(self):
        self.assertIn("gpt2-large_4xh100_dp4", self.bash("simulate", "gpt2-large_4xh"))
        self.assertEqual(self.bash("simulate", "x", "--set", "training.micro_batch="), {"training.micro_batch="})
        self.assertIn("training.micro_batch=", self.bash("compare", "--set-b", "training.mi"))
        self.assertIn("parallelism.tensor", self.bash("explain", "parallelism.te"))
        self.assertEqual(self.bash("plan", "parallelism", "gpt2-lar"), {"gpt2-large"})

    def test_bash_completes_options_of_the_command_in_use(self):
        self.assertEqual(self.bash("plan", "memory", "s.yaml", "--bud"), {"--budget", "--budgets"})
        self.assertEqual(self.bash("simulate", "--bud"), set())
        self.assertEqual(self.bash("validate", "--mod"), {"--models"})

    def test_bash_completes_values(self):
        self.assertEqual(self.bash("simulate", "--format", ""), {"table", "json"})
        self.assertEqual(self.bash("simulate", "--format", "=", "j"), {"json"})
        self.assertEqual(self.bash("simulate", "--format", "="), {"table", "json"})

    def test_bash_falls_back_to_files(self):
        self.assertEqual(self.bash("simulate", "--trace", ""), set())
        self.assertEqual(self.bash("simulate", "no-id-begins-so"), set())
        self.assertIn("complete -o default -F _tessera tessera", self.answer("completion", "bash"))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_completes(self):
        def zsh(*words):
            return self.offers("zsh", ASK_ZSH, "tessera", *words)
        self.assertLessEqual({"simulate", "plan", "FILES"}, zsh(""))
        self.assertLessEqual({"--budget", "--planner"}, zsh("plan", "memory", "--"))
        self.assertEqual(zsh("simulate", "--format", ""), {"table", "json"})
        self.assertEqual(zsh("simulate", "--trace", ""), {"FILES"})

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        self.plant("completion.fish", self.answer("completion", "fish"))
        def fish(line):
            script = f"source completion.fish; complete -C '{line}'"
            result = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder, capture_output=True,
                                    text=True, check=True, env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"})
            return {offer.split("\t")[0] for offer in result.stdout.splitlines()}
        self.assertEqual(fish("tessera sim"), {"simulate"})
        self.assertEqual(fish("tessera plan memory s.yaml --bud"), {"--budget", "--budgets"})
        self.assertEqual(fish("tessera simulate --format "), {"table", "json"})


if __name__ == "__main__":
    unittest.main()
