"""The configuration: where it is found, what wins, and how errors name the place to mend."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from perfdiff import configuration
from perfdiff.config import BuildConfig, CacheSize, CompareConfig, Config, CountersConfig, ProbeConfig, WorkloadConfig
from perfdiff.configuration import Overrides, buildsystem, settings, tomlfile
from perfdiff.errors import ConfigError
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.python.traits import PythonConfig

GOOD = """\
[build]
command = "make -j2"   # runs in the worktree
overlay = ["bench/"]

[[workload]]
name = "sort"
command = "./bench/sort {n} {mode}"
parameters = { n = [1000, 3000], mode = ["fast", "slow"] }
runs = 12

[[workload]]
name = "parse"
command = "./bench/parse"

[compare]
min_effect = 0.1
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return the top of a checkout, as far as the configuration looks at one."""
    (tmp_path / ".git").mkdir()
    return tmp_path


def load(
    directory: Path, text: str | None = None, *, overrides: Overrides | None = None, environment: Mapping[str, str] | None = None
) -> Config:
    if text is not None:
        (directory / "perfdiff.toml").write_text(text, encoding="utf-8")
    return configuration.load(directory, overrides=overrides, environment=environment or {})


def error_of(directory: Path, text: str, **given: object) -> tuple[str, str]:
    with pytest.raises(ConfigError) as raised:
        load(directory, text, **given)  # type: ignore[arg-type]
    return str(raised.value), raised.value.slug


def test_a_detector_whose_library_is_left_out_says_how_to_install_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    says, slug = error_of(checkout, f'{GOOD}detector = "autoencoder"\n')
    assert (slug, "pip install 'perfdiff[autoencoder]'" in says) == ("no-torch", True)
    assert load(checkout, f'{GOOD}detector = "pca"\n').compare.detector == "pca"


def test_file_is_read_with_defaults_for_the_rest(checkout: Path) -> None:
    config = load(checkout, GOOD)
    assert config == Config(
        build=BuildConfig("make -j2", overlay=("bench/",)),
        workloads=(
            WorkloadConfig("sort", "./bench/sort {n} {mode}", {"n": (1000, 3000), "mode": ("fast", "slow")}, runs=12),
            WorkloadConfig("parse", "./bench/parse"),
        ),
        compare=CompareConfig(min_effect=0.1),
        source=str(checkout / "perfdiff.toml"),
    )
    assert all(type(value) is int for value in config.workloads[0].parameters["n"])


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("build", BuildConfig),
        ("probes", ProbeConfig),
        ("compare", CompareConfig),
        ("counters", CountersConfig),
        ("python", PythonConfig),
        ("workload", WorkloadConfig),
    ],
)
def test_every_value_of_the_configuration_has_a_setting(section: str, values: type) -> None:
    known = settings.WORKLOAD if section == "workload" else settings.SECTIONS[section]
    names = {field.name for field in fields(values)}
    if section == "workload":  # a suite goes by its kind; what is left out of it, and when its cases hang, it tells itself
        names = names - {"suite", "left_out", "once", "plain_timeout_s"} | set(frameworks())
    if section == "build":  # which fuzz targets are chosen, perfdiff tells itself
        names -= {"chosen_targets"}
    if section == "measure":  # people write it with its unit
        names = names - {"time_s"} | {"time"}
    assert set(known) == names


@pytest.mark.parametrize(
    ("written", "seconds"), [('"2m"', 120.0), ("90", 90.0), ('"90s"', 90.0), ('"1h"', 3600.0), ('"0.5 h"', 1800.0), ('"90"', 90.0)]
)
def test_a_time_is_written_as_people_write_it(checkout: Path, written: str, seconds: float) -> None:
    assert load(checkout, f"{GOOD}[measure]\ntime = {written}\n").measure.time_s == seconds
    assert load(checkout, GOOD, environment={"PERFDIFF_MEASURE_TIME": written.strip('"')}).measure.time_s == seconds
    assert load(checkout, GOOD, overrides=Overrides(time=written.strip('"'))).measure.time_s == seconds
    assert load(checkout, GOOD).measure.time_s is None


@pytest.mark.parametrize("written", ["0", "soon", "-2m", "2 days", "0s", ""])
def test_a_time_that_is_none_is_refused(checkout: Path, written: str) -> None:
    with pytest.raises(ConfigError, match=r'--time is .*; it must be a time above 0, such as "90s", "2m" or "1h"'):
        load(checkout, GOOD, overrides=Overrides(time=written))


def test_counters_are_read_with_sizes_as_people_write_them(checkout: Path) -> None:
    caches = 'l1d = "48 KiB/12"\nllc = "36MiB/18"\nnodes = 2\n'
    text = f'[counters]\nevents = ["PAPI_TOT_INS"]\nsoftware = false\nbudget_s = 5\n{caches}'
    assert load(checkout, GOOD + text, environment={"PERFDIFF_COUNTERS_L2": "2 MiB/16"}).counters == CountersConfig(
        events=("PAPI_TOT_INS",),
        software=False,
        budget_s=5.0,
        l1d=CacheSize(48 * 1024, 12),
        l2=CacheSize(2 * 2**20, 16),
        llc=CacheSize(36 * 2**20, 18),
        nodes=2,
    )
    assert load(checkout, GOOD).counters == CountersConfig()
    assert load(checkout, GOOD + "[counters]\nevents = []\n").counters.events == ()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('l1d = "32 KB/8"', 'such as "32 KiB/8"'),
        ('l2 = "0 KiB/8"', 'such as "32 KiB/8"'),
        ('llc = "1 MiB"', 'such as "32 KiB/8"'),
        ("nodes = 0", "at least 1"),
        ('software = "yes"', "true or false"),
        ('events = ["PAPI_TOT_INS", "PAPI_TOT_INS"]', "different names"),
        ('events = ["PAPI_TOT_INS,PAPI_TOT_CYC"]', "different names"),
        (f"events = {[f'E{i}' for i in range(21)]}", "at most 20"),
        (f"events = {['E' * 56]}", "at most 55 bytes"),
    ],
)
def test_counters_that_cannot_be_meant_are_told_with_an_example(checkout: Path, line: str, wanted: str) -> None:
    message, slug = error_of(checkout, f"{GOOD}[counters]\n{line}\n")
    assert slug == "config-value"
    assert wanted in message


def test_file_is_found_upward_to_the_top_of_the_checkout(checkout: Path) -> None:
    (checkout / "perfdiff.toml").write_text(GOOD)
    folder = checkout / "src" / "core"
    folder.mkdir(parents=True)
    assert load(folder).source == str(checkout / "perfdiff.toml")
    assert configuration.project(folder) == checkout


def test_nearest_file_wins(checkout: Path) -> None:
    (checkout / "perfdiff.toml").write_text(GOOD)
    folder = checkout / "library"
    folder.mkdir()
    config = load(folder, GOOD.replace("make -j2", "make library"))
    assert config.build.command == "make library"
    assert configuration.project(folder) == folder


def test_file_above_the_checkout_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "perfdiff.toml").write_text(GOOD)
    checkout = tmp_path / "checkout"
    (checkout / ".git").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"no perfdiff\.toml was found"):
        load(checkout)


def test_table_of_pyproject_is_read(checkout: Path) -> None:
    text = '[project]\nname = "x"\n\n[tool.perfdiff.build]\ncommand = "make"\n\n[[tool.perfdiff.workload]]\nname = "a"\ncommand = "./a"\n'
    (checkout / "pyproject.toml").write_text(text)
    assert load(checkout).build.command == "make"
    (checkout / "pyproject.toml").write_text(text.replace('command = "./a"', 'comand = "./a"'))
    with pytest.raises(ConfigError, match=r"pyproject.toml, line 9: unknown key 'comand'"):
        load(checkout)


def test_pyproject_of_others_is_passed_over(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text("[project\n")
    (checkout / "Makefile").touch()
    assert load(checkout, overrides=Overrides(command="./a")).source is None


def test_a_cluster_is_that_of_the_file_unless_a_command_names_another(checkout: Path) -> None:
    text = f'{GOOD}\n[cluster]\naddress = "tcp://lab1:8786"\n'
    assert load(checkout, text).cluster.address == "tcp://lab1:8786"
    assert load(checkout, text, overrides=Overrides(cluster="tls://lab2:8786")).cluster.address == "tls://lab2:8786"
    assert load(checkout, GOOD).cluster.address is None


def test_a_fast_answer_that_the_command_line_asks_for_sets_a_thorough_one_aside(checkout: Path) -> None:
    text = f"{GOOD}[measure]\nthorough = true\n"
    measure = load(checkout, text, overrides=Overrides(fast=True)).measure
    assert (measure.fast, measure.thorough) == (True, False)


@pytest.mark.parametrize(("asked", "is_fast"), [(None, False), (False, True)])
def test_what_needs_functions_is_never_fast(checkout: Path, asked: bool | None, is_fast: bool) -> None:
    assert load(checkout, f"{GOOD}[measure]\nfast = true\n", overrides=Overrides(fast=asked)).measure.fast is is_fast


def test_command_line_wins_over_environment_over_file_over_default(checkout: Path) -> None:
    text = f"{GOOD}seed = 7\n"
    variables = {"PERFDIFF_COMPARE_SEED": "8", "PERFDIFF_RUNS": "20", "PERFDIFF_BUILD_COMMAND": "make all"}
    assert load(checkout, GOOD).compare.seed == 1
    assert load(checkout, text).compare.seed == 7
    by_environment = load(checkout, text, environment=variables)
    assert (by_environment.compare.seed, by_environment.build.command) == (8, "make all")
    assert [workload.runs for workload in by_environment.workloads] == [20, 20]
    by_command_line = load(checkout, text, overrides=Overrides(seed=9, runs=30, build="ninja"), environment=variables)
    assert (by_command_line.compare.seed, by_command_line.build.command) == (9, "ninja")
    assert [workload.runs for workload in by_command_line.workloads] == [30, 30]


def test_lists_come_from_the_environment_as_toml(checkout: Path) -> None:
    config = load(checkout, GOOD, environment={"PERFDIFF_PROBES_EXCLUDE": '["third_party/*", "gen/*"]'})
    assert config.probes.exclude == ("third_party/*", "gen/*")


@pytest.mark.parametrize(
    ("before", "after", "says", "slug"),
    [
        ("runs = 12", "rums = 12", "line 9: unknown key 'rums'; in [workload] there are name, command", "config-key"),
        ("[build]", "[biuld]", "workload; did you mean 'build'?", "config-key"),
        ("runs = 12", 'runs = "12"', "line 9: 'runs' is \"12\"; it must be a whole number of at least 2, such as 10", "config-value"),
        ("runs = 12", "runs = 1", "line 9: 'runs' is 1; it must be a whole number of at least 2, such as 10", "config-value"),
        ("runs = 12", "runs = true", "line 9: 'runs' is true; it must be a whole number of at least 2, such as 10", "config-value"),
        ("min_effect = 0.1", "min_effect = 5", "line 16: 'min_effect' is 5; it must be a share between 0 and 1", "config-value"),
        ('["bench/"]', '"bench/"', "line 3: 'overlay' is \"bench/\"; it must be a list of paths, such as [\"bench/\"]", "config-value"),
        ("n = [1000, 3000]", "n = 1000", "such as { n = [1000, 3000, 10000] }", "config-value"),
        ("n = [1000, 3000]", "n = []", "it must be a table of lists of numbers or texts", "config-value"),
        ('"parse"', '"sort"', "line 12: 'sort' is the name of a workload above", "config-workload"),
        ('name = "parse"\n', "", "line 11: this [[workload]] has no 'name'", "config-workload"),
        ("{n} ", "{size} ", "line 7: '{size}' in './bench/sort {size} {mode}' has no parameter", "config-parameter"),
        ("{n} ", "", "line 7: parameter 'n' has no place in './bench/sort {mode}'; write {n} where its value goes", "config-parameter"),
        ("[build]\n", "build = 3\n[other]\n", "line 2: unknown key 'other'", "config-key"),
        ('command = "make -j2"', "command = make", "not valid TOML: Invalid value (at line 2, column 11)", "config-syntax"),
    ],
)  # fmt: skip
def test_error_names_file_line_key_and_what_is_valid(checkout: Path, before: str, after: str, says: str, slug: str) -> None:
    message, found = error_of(checkout, GOOD.replace(before, after, 1))
    assert message.startswith(str(checkout / "perfdiff.toml"))
    assert says in message
    assert found == slug


def test_key_behind_values_of_several_lines_has_its_own_line(checkout: Path) -> None:
    text = '[build]\ncommand = """\nmake \\\n  -j2\n"""\noverlay = [\n  "a", # [build]\n  "b",\n]\ntimeout_s = -1\n'
    message, _ = error_of(checkout, text)
    assert "line 10: 'timeout_s' is -1; it must be a number of seconds above 0, such as 300" in message


def test_keys_of_nested_tables_and_dotted_keys_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('build.command = "make"\n\n[[workload]]\nname = "a"\n[workload.parameters]\nn = [1]\n\n[[workload]]\n"name" = "b"\n')
    source = tomlfile.read(path)
    assert source.place(("build", "command")) == f"{path}, line 1"
    assert source.place(("workload", 0, "parameters", "n")) == f"{path}, line 6"
    assert source.place(("workload", 1, "name")) == f"{path}, line 9"
    assert source.place(("workload", 1, "runs")) == f"{path}, line 8"


@pytest.mark.parametrize("text", ["workload = 3\n", '[workload]\nname = "a"\n'])
def test_workload_that_is_no_list_is_told_how_to_be_written(checkout: Path, text: str) -> None:
    message, slug = error_of(checkout, f'{text}[build]\ncommand = "make"\n')
    assert "workloads are a list: write [[workload]] above each one" in message
    assert slug == "config-value"


def test_missing_file_named_on_the_command_line_is_an_error(checkout: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml: cannot be read: No such file"):
        load(checkout, overrides=Overrides(file=checkout / "nothing.toml"))


def test_error_in_the_environment_names_the_variable(checkout: Path) -> None:
    message, slug = error_of(checkout, GOOD, environment={"PERFDIFF_COMPARE_FDR": "much"})
    assert message == "environment: 'PERFDIFF_COMPARE_FDR' is \"much\"; it must be a share between 0 and 1, such as 0.05"
    assert slug == "config-value"
    message, slug = error_of(checkout, GOOD, environment={"PERFDIFF_COMPARE_SEDE": "1"})
    assert message == "environment: unknown variable PERFDIFF_COMPARE_SEDE; did you mean 'PERFDIFF_COMPARE_SEED'?"
    assert slug == "config-key"


def test_command_on_the_command_line_is_a_workload_named_by_its_program(checkout: Path) -> None:
    overrides = Overrides(command="MODE=fast ./bench/sort {n}", parameters={"n": (1000, 3000)}, runs=5)
    assert load(checkout, GOOD, overrides=overrides).workloads == (
        WorkloadConfig("sort", "MODE=fast ./bench/sort {n}", {"n": (1000, 3000)}, runs=5),
    )


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(command="./sort {n}"), "'{n}' in './sort {n}' has no parameter; give each with --param"),
        (Overrides(command="./sort {n}", parameters={"m": (1,)}), "'{n}' in './sort {n}' has no parameter"),
        (Overrides(command="./sort", parameters={"n": (1,)}), "parameter 'n' has no place in './sort'"),
        (Overrides(command="./sort 'x"), "cannot be read: No closing quotation"),
        (Overrides(command="A=1"), "names no program"),
        (Overrides(command="./sort", workloads=("sort",)), "give one"),
        (Overrides(workloads=("srot",)), "no workload is named 'srot'; there are sort, parse; did you mean 'sort'?"),
        (Overrides(parameters={"k": (1,)}), "--param k: no workload has this parameter; there are mode, n"),
        (Overrides(runs=1), "at least 2, such as 10 (at least 4 to judge the time of calls)"),
        (Overrides(seed=-1), "--seed is -1; it must be a whole number of at least 0"),
    ],
)
def test_command_line_that_does_not_fit_is_an_error(checkout: Path, overrides: Overrides, says: str) -> None:
    message, _ = error_of(checkout, GOOD, overrides=overrides)
    assert says in message


def test_what_says_that_heads_do_their_work_is_read(checkout: Path) -> None:
    text = GOOD.replace("runs = 12", "runs = 12\ncheck = 'grep -q {n}'").replace("[compare]", '[compare]\noutputs = "differ"')
    config = load(checkout, text)
    assert ([workload.check for workload in config.workloads], config.compare.outputs) == (["grep -q {n}", None], "differ")
    message, _ = error_of(checkout, text.replace("differ", "any"))
    assert "'outputs' is" in message


def test_variables_of_the_shell_are_no_places(checkout: Path) -> None:
    config = load(checkout, GOOD, overrides=Overrides(command="./sort ${HOME} {n}", parameters={"n": (1,)}))
    assert config.workloads[0].command == "./sort ${HOME} {n}"


def test_what_is_done_before_runs_is_read_and_the_command_line_replaces_it_in_all_workloads(checkout: Path) -> None:
    text = GOOD.replace("runs = 12", 'runs = 12\nsetup = "./make {n} {size} > input"\nprepare = "rm -f log"\nwarmup = 2').replace(
        "n = [1000, 3000],", "n = [1000, 3000], size = [7],"
    )
    (sort, parse) = load(checkout, text).workloads
    assert (sort.setup, sort.prepare, sort.warmup) == ("./make {n} {size} > input", "rm -f log", 2)
    assert sort.parameters["size"] == (7,), "its place is in the setup alone"
    assert (parse.setup, parse.prepare, parse.warmup) == (None, None, 0)
    replaced = load(checkout, text, overrides=Overrides(setup="./make {n} {mode} {size}", workloads=("sort",), warmup=1)).workloads
    assert [(each.setup, each.prepare, each.warmup) for each in replaced] == [("./make {n} {mode} {size}", "rm -f log", 1)]
    given = Overrides(command="./a", prepare="./b {n}", parameters={"n": (1, 2)})
    assert load(checkout, overrides=given).workloads == (WorkloadConfig("a", "./a", {"n": (1, 2)}, prepare="./b {n}"),)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(prepare="./b {k}"), "command line: '{k}' in './b {k}' has no parameter"),
        (Overrides(command="./a", setup="./b {k}"), "command line: '{k}' in './b {k}' has no parameter"),
        (Overrides(prepare=" "), '--prepare is " "; it must be a shell command, such as'),
        (Overrides(warmup=-1), "--warmup is -1; it must be a whole number of at least 0, such as 1"),
    ],
)
def test_what_cannot_be_done_before_runs_is_an_error(checkout: Path, overrides: Overrides, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(checkout, GOOD, overrides=overrides)
    assert says in str(raised.value)


INPUTS = """\
build.command = "make"
[[workload]]
name = "parse"
command = "./parse {input} {mode}"
parameters = { mode = ["fast", "safe"] }
inputs = ["corpus/**/*.c", "corpus/main.c", "[x].c"]
features = { nodes = 'nodes: ([0-9]+)' }
[[workload]]
name = "other"
command = "./other {input}"
inputs = ["absent/*"]
"""
PARSE = Overrides(workloads=("parse",))


@pytest.fixture
def corpus(checkout: Path) -> Path:
    """Fill the checkout with files that patterns match, and with some that they do not."""
    for name in ("corpus/main.c", "corpus/deep/er/b.c", "corpus/a.c", "corpus/note.txt", "corpus/.hidden.c", "x.c", "[x].c", "other.c"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    (checkout / "corpus" / "folder.c").mkdir()
    (checkout / "corpus" / "loop").symlink_to(".")
    (checkout / "corpus" / "again.c").symlink_to("a.c")
    return checkout


def test_inputs_are_the_files_that_patterns_mean_each_once_and_sorted(corpus: Path) -> None:
    (parse,) = load(corpus, INPUTS, overrides=PARSE).workloads
    assert parse.inputs == ("[x].c", "corpus/a.c", "corpus/deep/er/b.c", "corpus/main.c")
    assert parse.values == {"mode": ("fast", "safe"), "input": parse.inputs}
    assert parse.features == {"nodes": "nodes: ([0-9]+)"}


def test_inputs_outside_of_the_project_are_absolute_or_lead_out_of_it(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    far = tmp_path_factory.mktemp("far") / "big.c"
    far.touch()
    (corpus / "sub").mkdir()
    text = INPUTS.replace('"corpus/**/*.c", "corpus/main.c", "[x].c"', f'"../x.c", "{far.parent}/*", "{corpus}/sub/*.c"')
    (corpus / "sub" / "own.c").touch()
    (corpus / "sub" / ".own.c").touch()
    assert load(corpus / "sub", text, overrides=PARSE).workloads[0].inputs == ("../x.c", str(far), "own.c")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("corpus/**", ("corpus/a.c", "corpus/deep/er/b.c", "corpus/main.c", "corpus/note.txt")),
        ("./corpus/?.c", ("corpus/a.c",)),
        ("corpus/.*", ("corpus/.hidden.c",)),
        ("corpus/.hidden.c", ("corpus/.hidden.c",)),
        ("[[]x].c", ("[x].c",)),
        ("[xo]*.c", ("other.c", "x.c")),
    ],
)
def test_wildcards_are_those_of_a_shell(corpus: Path, pattern: str, found: tuple[str, ...]) -> None:
    (parse,) = load(corpus, INPUTS.replace('"corpus/**/*.c", "corpus/main.c", "[x].c"', f'"{pattern}"'), overrides=PARSE).workloads
    assert parse.inputs == found


def test_the_command_line_chooses_among_inputs(corpus: Path) -> None:
    given = replace(PARSE, parameters={"input": ("corpus/m*.c", "corpus/a.c"), "mode": ("fast",)})
    (parse,) = load(corpus, INPUTS, overrides=given).workloads
    assert parse.values == {"mode": ("fast",), "input": ("corpus/a.c", "corpus/main.c")}
    with pytest.raises(ConfigError, match="--param input: no file is meant by 'corpus/none' in") as raised:
        load(corpus, INPUTS, overrides=replace(given, parameters={"input": ("corpus/none",)}))
    assert raised.value.slug == "config-inputs"


def test_inputs_are_looked_for_only_where_something_is_measured(corpus: Path) -> None:
    (corpus / "perfdiff.toml").write_text(INPUTS)
    config = configuration.load(corpus, environment={}, measuring=False)
    assert [workload.inputs for workload in config.workloads][1] == ("absent/*",)


@pytest.mark.parametrize(
    ("before", "after", "says", "slug"),
    [
        ('"[x].c"', '"corpus/*.py"', "line 6: 'inputs': no file is meant by 'corpus/*.py' in {top}; correct it", "config-inputs"),
        ('"[x].c"', '"a\\u0000/*"', "no file is meant by", "config-inputs"),
        ('"[x].c"', f'"{"x" * 5000}"', "no file is meant by", "config-inputs"),
        ('"[x].c"', f'"{"x" * 5000}*"', "no file is meant by", "config-inputs"),
        ('"[x].c"', '"*/.*.h"', "no file is meant by", "config-inputs"),
        ("{input} {mode}", "{mode}", "line 4: parameter 'input' has no place in './parse {{mode}}'; write {{input}}", "config-parameter"),
        ('inputs = ["absent/*"]', "", "has no parameter; list its values in 'parameters', or its files in 'inputs'", "config-parameter"),
        ('"corpus/**/*.c", "corpus/main.c", "[x].c"', "", "line 6: 'inputs' is []; it must be a pattern of files", "config-value"),
        ("mode = [", "bytes = [", "line 5: 'bytes' in 'parameters' is a name that 'inputs' has; give it another", "config-parameter"),
        ("nodes = '", "input = '", "line 7: 'input' in 'features' is a name that 'inputs' has", "config-parameter"),
        ("nodes = '", "mode = '", "line 7: 'mode' in 'features' is a name that 'parameters' has", "config-parameter"),
        ("([0-9]+)", "[0-9]+", "line 7: the pattern of feature 'nodes', \"nodes: [0-9]+\", has 0 groups; put the number", "config-feature"),
        ("([0-9]+)", "([0-9]+)(s)", "has 2 groups", "config-feature"),
        ("([0-9]+)", "([0-9]+", "is no regular expression: missing ), unterminated subpattern at position 7", "config-feature"),
        ("([0-9]+)", "(?u)", "is no regular expression", "config-feature"),
        ("nodes = '", "'no des' = '", "line 7: 'features' is {{\"no des\": \"nodes: ([0-9]+)\"}}; it must be a table of", "config-value"),
    ],
)  # fmt: skip
def test_inputs_and_features_that_cannot_be_meant_are_errors(corpus: Path, before: str, after: str, says: str, slug: str) -> None:
    assert before in INPUTS
    message, found = error_of(corpus, INPUTS.replace(before, after, 1), overrides=PARSE)
    assert says.format(top=corpus) in message
    assert found == slug


def test_an_input_whose_name_reports_cannot_write_is_an_error(corpus: Path) -> None:
    (corpus / "corpus" / os.fsdecode(b"\xff.c")).touch()
    message, slug = error_of(corpus, INPUTS, overrides=PARSE)
    assert "line 6: 'inputs': the name of the file 'corpus/\\udcff.c' is not UTF-8; rename it" in message
    assert slug == "config-inputs"


def test_named_workloads_and_given_parameters_replace_the_files(checkout: Path) -> None:
    config = load(checkout, GOOD, overrides=Overrides(workloads=("sort",), parameters={"n": (5, 6)}))
    assert [workload.name for workload in config.workloads] == ["sort"]
    assert config.workloads[0].parameters == {"n": (5, 6), "mode": ("fast", "slow")}


def test_no_workload_is_an_error_that_says_what_to_write(checkout: Path) -> None:
    message, slug = error_of(checkout, '[build]\ncommand = "make"\n')
    assert "no [[workload]] is configured" in message
    assert "perfdiff BASE HEAD --param n=1000,3000,10000 -- ./program {n}" in message
    assert slug == "config-no-workload"
    assert "not listed" not in message


@pytest.mark.parametrize(
    ("file", "text", "advice"),
    [
        (
            "pom.xml",
            "<artifactId>testng</artifactId>",
            "tests of TestNG are not listed: run a class of them, as `perfdiff BASE HEAD -- java",
        ),
        ("tests/Pest.php", "<?php", "tests of Pest are not listed: run a file of them, as `perfdiff BASE HEAD -- vendor/bin/pest"),
    ],
)
def test_how_tests_are_run_that_are_not_listed_is_told(checkout: Path, file: str, text: str, advice: str) -> None:
    (checkout / file).parent.mkdir(exist_ok=True)
    (checkout / file).write_text(text)
    message, slug = error_of(checkout, '[build]\ncommand = "make"\n')
    assert advice in message
    assert slug == "config-no-workload"


@pytest.mark.parametrize(
    ("files", "guess"),
    [
        (["Makefile"], "make -j$(nproc)"),
        (["CMakeLists.txt", "Makefile"], "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --parallel $(nproc)"),
        (["meson.build"], "meson setup build --buildtype=release && ninja -C build"),
        (["tests/Makefile", "src/Makefile"], "make -C tests -j$(nproc)"),
        (["configure.ac", "Makefile"], "(test -x configure || autoreconf -fi) && ./configure && make -j$(nproc)"),
    ],
)
def test_build_command_is_guessed_from_the_files_and_said(checkout: Path, files: list[str], guess: str) -> None:
    for name in files:
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).touch()
    config = load(checkout, overrides=Overrides(command="./a"))
    assert config.build.command == guess
    assert config.build_guessed_from == files[0]


def test_makefiles_below_build_nothing_of_a_project_in_another_language(checkout: Path) -> None:
    (checkout / "tests").mkdir()
    (checkout / "tests/Makefile").touch()
    assert buildsystem.detect(checkout) is not None
    (checkout / "setup.py").touch()
    assert buildsystem.detect(checkout) is None


def test_unknown_build_system_is_an_error_that_says_what_to_write(checkout: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(checkout, overrides=Overrides(command="./a"))
    assert raised.value.slug == "config-build"
    assert f"write in {checkout / 'perfdiff.toml'}" in str(raised.value)
    assert '[build]\ncommand = "make"' in str(raised.value)
    assert buildsystem.detect(checkout) is None


@pytest.mark.parametrize(
    ("files", "command", "sign"),
    [
        ({"pyproject.toml": "[build-system]\n"}, "./a", "pyproject.toml"),
        ({"pyproject.toml": "[tool.poetry]\n"}, "./a", "pyproject.toml"),
        ({"setup.py": "setup()"}, "./a", "setup.py"),
        ({"setup.cfg": "[flake8]\n[metadata]\n"}, "./a", "setup.cfg"),
        ({"pyproject.toml": "[project]\n", "Makefile": ""}, "pytest -k bench", "pyproject.toml"),
        ({}, "env -i ./a", None),
        ({}, "N=1 python3.12 run.py", "N=1 python3.12 run.py"),
        ({}, "./bench/run.py", "./bench/run.py"),
    ],
)
def test_a_python_project_is_known_and_needs_no_build_command(
    checkout: Path, files: dict[str, str], command: str, sign: str | None
) -> None:
    for name, text in files.items():
        (checkout / name).write_text(text)
    if sign is None:
        with pytest.raises(ConfigError, match="no build command is configured"):
            load(checkout, overrides=Overrides(command=command))
        return
    config = load(checkout, overrides=Overrides(command=command))
    assert (config.languages["python"], config.build.command, config.build_guessed_from) == (PythonConfig(), "", sign)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pyproject.toml": "[project]\n", "CMakeLists.txt": ""}, "./bench {n}"),  # bindings beside a library
        ({"Makefile": ""}, "python3 drive.py"),  # a C program driven by a script
        ({"pyproject.toml": "[tool.ruff]\n", "Makefile": ""}, "python3 drive.py"),
        ({"requirements-docs.txt": "", "Makefile": ""}, "./bench"),
    ],
)
def test_a_project_of_another_language_is_none_of_python(checkout: Path, files: dict[str, str], command: str) -> None:
    for name, text in files.items():
        (checkout / name).write_text(text)
    config = load(checkout, overrides=Overrides(command=command, parameters={"n": (1,)} if "{n}" in command else {}))
    assert "python" not in config.languages
    assert config.build.command


def test_a_table_makes_any_project_one_of_python(checkout: Path) -> None:
    config = load(checkout, GOOD + '[python]\ninterpreter = "python3.12"\nrequirements = ["bench.txt", "six"]\n')
    assert config.languages["python"] == PythonConfig("python3.12", ("bench.txt", "six"))
    assert config.build.command == "make -j2"
    assert load(checkout, GOOD + "[python]\n").languages["python"] == PythonConfig()
    assert load(checkout, GOOD, environment={"PERFDIFF_PYTHON_EDITABLE": "false"}).languages["python"] == PythonConfig(editable=False)
    assert load(checkout, GOOD, environment={"PERFDIFF_PYTHON": "sheet"}).languages == {}


def test_neither_build_nor_workload_is_needed_where_nothing_is_measured(checkout: Path) -> None:
    config = configuration.load(checkout, environment={"PERFDIFF_COMPARE_FDR": "0.1"}, measuring=False)
    assert config == Config(BuildConfig(""), (), compare=CompareConfig(fdr=0.1))


@pytest.mark.parametrize(
    ("text", "values"),
    [("1000,3000", (1000, 3000)), ("0.5, 1e3", (0.5, 1000.0)), ("small,large", ("small", "large")), ("7", (7,)), (",", ())],
)
def test_parameter_values_are_numbers_where_they_can_be(text: str, values: tuple[float | str, ...]) -> None:
    found = settings.parameter_values(text)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]
