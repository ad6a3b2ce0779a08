"""Tests how kit_figures.py evaluates the reports of an official kit, without the kit."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURES = ROOT / "tests/conformance/kit_figures.py"


def report(passed, failed=(), skipped=0):
    """A JUnit report with this number of tests, and failures of these names."""
    cases = [f'<testcase classname="kit" name="good[{n}]"/>' for n in range(passed)]
    cases += [f'<testcase classname="kit" name="{name}"><failure/></testcase>' for name in failed]
    cases += [f'<testcase classname="kit" name="skip[{n}]"><skipped/></testcase>' for n in range(skipped)]
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


def requirements(must, should=7, may=4):
    """A report of 1.0 in which this number of requirements of each level passed."""
    levels = {"MUST": must, "SHOULD": should, "MAY": may}
    return {
        "per_requirement": {
            f"{level}-{n}": {"level": level, "status": "PASS"} for level, count in levels.items() for n in range(count)
        }
    }


class KitFigures(unittest.TestCase):
    def judge(self, reports, expected="", generation="0.3", levels=None):
        """The exit code and the text for these reports, by name."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, text in reports.items():
                (folder / f"{name}.xml").write_text(text)
            if levels:
                (folder / "requirements.json").write_text(json.dumps(levels))
            (folder / "expected.txt").write_text(expected)
            run = subprocess.run(
                [sys.executable, "-B", FIGURES, "--generation", generation, "--reports", folder]
                + ["--expected", folder / "expected.txt"],
                capture_output=True, text=True, check=False,
            )
            return run.returncode, run.stdout

    def good(self, **failed):
        return {
            "mandatory": report(30, failed.get("mandatory", ())),
            "capabilities": report(31, failed.get("capabilities", ())),
        }

    def test_a_run_without_failures_passes(self):
        code, text = self.judge(self.good())
        self.assertEqual(code, 0, text)
        self.assertIn("mandatory: 30 passed, 0 failed, 0 skipped", text)

    def test_an_unexpected_failure_fails(self):
        code, text = self.judge(self.good(mandatory=["bad"]))
        self.assertEqual((code, "FAILED: failed: kit::bad" in text), (1, True), text)

    def test_an_expected_failure_passes(self):
        code, text = self.judge(self.good(mandatory=["bad"]), "# why\n0.3 kit::bad  # as they say\n")
        self.assertEqual(code, 0, text)

    def test_a_failure_expected_for_another_kit_fails(self):
        self.assertEqual(self.judge(self.good(mandatory=["bad"]), "1.0 kit::bad\n")[0], 1)

    def test_an_expected_failure_that_passes_fails(self):
        code, text = self.judge(self.good(), "0.3 kit::good[1]\n")
        self.assertEqual((code, "expected to fail, but passed: kit::good[1]" in text), (1, True), text)

    def test_skipped_tests_do_not_count_as_passed(self):
        reports = {"mandatory": report(1, skipped=29), "capabilities": report(31)}
        self.assertEqual(self.judge(reports)[0], 1)

    def test_a_missing_run_fails(self):
        for run in self.good():
            reports = self.good()
            del reports[run]
            self.assertEqual(self.judge(reports)[0], 1, run)

    def test_every_level_of_1_0_has_a_minimum(self):
        reports = {"compatibility": report(177)}
        code, text = self.judge(reports, generation="1.0", levels=requirements(79))
        self.assertEqual(code, 0, text)
        self.assertIn("MUST: 79/79 passed", text)
        self.assertEqual(self.judge(reports, generation="1.0", levels=requirements(78))[0], 1)
        self.assertEqual(self.judge(reports, generation="1.0", levels=requirements(79, may=3))[0], 1)
        self.assertEqual(self.judge(reports, generation="1.0")[0], 1)

    def test_an_expected_failure_names_a_section_that_1_0_1_changed(self):
        lines = (ROOT / "tests/conformance/expected-failures.txt").read_text().splitlines()
        listed = [line for line in lines if line and not line.startswith("#")]
        self.assertEqual([line for line in listed if not re.fullmatch(r"1\.0 tests\.\S+ # v1\.0\.1 §.+", line)], [])
        self.assertEqual(len(listed), 4)


if __name__ == "__main__":
    unittest.main()
