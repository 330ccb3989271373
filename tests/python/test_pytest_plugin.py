"""The pytest plugin, by runs of pytest within pytest. Runs where the wheel is installed."""

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
