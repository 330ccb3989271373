"""The pytest plugin, by runs of pytest within pytest. Runs where the wheel is installed."""

import json

import tidemark

pytest_plugins = ["pytester"]

STEP = """
import pytest

@pytest.mark.limit_peak({limit!r}, device="l4", batch=2)
def test_step(memory_step):
    explanation = memory_step("gpt2", strategy="vanilla")
    assert explanation["device"]["name"] == "l4"
"""


def test_a_step_within_the_limit_passes(pytester):
    pytester.makepyfile(STEP.format(limit="10 GiB"))
    pytester.runpytest("-W", "error::pytest.PytestUnknownMarkWarning").assert_outcomes(passed=1)


def test_a_step_above_it_fails_and_names_five_tensors(pytester):
    pytester.makepyfile(STEP.format(limit="1 GiB"))
    result = pytester.runpytest("-rN")  # no summary: where CI is set, it repeats the whole message
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the step allocates * GiB on l4, * more than 1.00 GiB",
                                 "at the peak (*) the largest tensors are:",
                                 "*MiB  loss.log_softmax*"])
    shown = [line for line in result.outlines if line.startswith("  ") and "iB  " in line]
    assert len(shown) == 5


def test_a_limit_without_a_step_limits_nothing_and_says_so(pytester):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.limit_peak("1 GiB")
        def test_forgotten(memory_step):
            pass
    """)
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*gave no step to memory_step*"])


def test_a_limit_needs_the_fixture_and_a_size(pytester):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.limit_peak("1 GiB")
        def test_without():
            pass
    """)
    result = pytester.runpytest()
    assert result.ret == 4  # usage
    result.stderr.fnmatch_lines(["*limit_peak needs the fixture memory_step*"])
    pytester.makepyfile(STEP.format(limit="ten"))
    pytester.runpytest().stdout.fnmatch_lines(["*'ten' is no size*"])


BASELINED = """
def test_step(memory_step):
    memory_step("vit-ti-16", batch={batch}, device="l4")
    memory_step({{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2,
                 "vocab_size": 99}}, sequence=8, batch=2, strategy="checkpoint")
"""


def test_a_baseline_is_recorded_and_compared_with(pytester):
    pytester.makefile(".json", tidemark='{"format": "tidemark-check", "version": 1, "experiments": '
                      '[{"id": "mine", "model": "gpt2"}]}')
    pytester.makepyfile(BASELINED.format(batch=4))
    pytester.runpytest("--memory-baseline").stdout.fnmatch_lines(["*has no numbers of this step yet*"])
    pytester.runpytest("--memory-update").assert_outcomes(passed=1)
    recorded = json.loads((pytester.path / "tidemark.json").read_text())
    ids = [each["id"] for each in recorded["experiments"]]
    assert ids[0] == "mine" and [each.split("::")[1] for each in ids[1:]] == ["test_step",
                                                                             "test_step #2"]
    assert sorted(each["id"] for each in recorded["expected"]["experiments"]) == sorted(ids)
    pytester.runpytest("--memory-baseline").assert_outcomes(passed=1)
    assert tidemark.check(pytester.path / "tidemark.json")["failures"] == 0  # without pytest, too

    pytester.makepyfile(BASELINED.format(batch=5))
    result = pytester.runpytest("--memory-baseline=tidemark.json", "-rN")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*allocated*"])
    pytester.runpytest().assert_outcomes(passed=1)  # nobody asked
    pytester.runpytest("-o", "memory_baseline=tidemark.json").assert_outcomes(failed=1)
    pytester.runpytest("--memory-update").assert_outcomes(passed=1)
    pytester.runpytest("--memory-baseline").assert_outcomes(passed=1)


def test_an_update_that_cannot_be_written_says_why(pytester):
    pytester.makepyfile(BASELINED.format(batch=4))
    (pytester.path / "tidemark.json").write_text("{]")
    result = pytester.runpytest("--memory-update")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*tidemark.json*"])
    assert (pytester.path / "tidemark.json").read_text() == "{]"
