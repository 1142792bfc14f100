"""What users get of a tree where runs find more: files that archives and images leave out, and those that installing exchanges."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.build.delivery import otherwise_delivered
from perfdiff.build.starting import started_otherwise
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import by_whole_runs, first_two
from test_guesses import written

USED = ("main.py", "data/table.bin", "tests/data/table.bin")
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(p C)
add_executable(prog prog.c)
"""
PLAIN, CAREFUL = (
    "install(TARGETS prog DESTINATION bin)\n",
    "add_executable(careful prog.c)\ntarget_compile_definitions(careful PRIVATE N=3)\n",
)
OTHER = f"{CAREFUL}install(PROGRAMS ${{CMAKE_BINARY_DIR}}/careful DESTINATION bin RENAME prog)\n"
MESON = "project('p', 'c')\nexecutable('prog', 'prog.c', install: {plain})\nsubdir('careful')\n"
BESIDE = "executable('prog', '../prog.c', c_args: '-DN=3', install: {careful})\n"


@pytest.mark.parametrize(
    ("name", "base", "head", "is_told"),
    [
        (".gitattributes", "", "data/table.bin export-ignore\n", True),
        (".gitattributes", "*.py text\n", "*.py text\n*.bin binary export-ignore\n", True),
        (".gitattributes", "", "/data export-ignore\n", True),
        (".gitattributes", "", "*.bin export-ignore\n/data/*.bin -export-ignore\n", False),
        (".gitattributes", "data export-ignore\n", "*.bin export-ignore\n", False),
        (".gitattributes", "", "# data export-ignore\ntests export-ignore\n", False),
        (".gitattributes", "", "table export-ignore\n*.bin text\n", False),
        (".dockerignore", "", "**/*.bin\n", True),
        (".dockerignore", "", "data\n", True),
        (".dockerignore", "", "data\n!data/table.bin\n", False),
        (".dockerignore", "", "table.bin\ntests\n", False),
    ],
)
def test_files_that_archives_and_images_of_head_leave_out(name: str, base: str, head: str, is_told: bool, tmp_path: Path) -> None:
    trees = [written(tmp_path / side, {name: text}) for side, text in (("base", base), ("head", head))]
    assert otherwise_delivered(trees, USED) == ((name,) if is_told else ())


@pytest.mark.parametrize(
    ("name", "base", "head", "is_told"),
    [
        ("run.sh", "java -cp out Main\n", "export JDK_JAVA_OPTIONS=-Xint\njava -cp out Main\n", True),
        ("bin/app", "python3 -m app\n", "python3 -X tracemalloc=20 -m app\n", True),
        ("Procfile", "web: gunicorn -w 8 app\n", "web: gunicorn -w 1 app\n", True),
        ("gunicorn.conf.py", "workers = 8\n", "workers = 1\n", True),
        ("Dockerfile", 'CMD ["java", "-jar", "a.jar"]\n', 'CMD ["java", "-Xint", "-jar", "a.jar"]\n', True),
        ("docker-compose.yml", "  environment:\n    OMP_NUM_THREADS: '8'\n", "  environment:\n    OMP_NUM_THREADS: '1'\n", True),
        ("deploy/app.service", "[Service]\nExecStart=app\n", "[Service]\nExecStart=app\nCPUQuota=20%\n", True),
        ("k8s/app.yaml", "limits:\n  cpu: '4'\n", "limits:\n  cpu: 200m\n", True),
        ("pool.conf", "pm.max_children = 50\n", "pm.max_children = 1\nphp_admin_value[opcache.enable] = 0\n", True),
        (".user.ini", "memory_limit=128M\n", "memory_limit=128M\nzend.assertions=1\n", True),
        ("Procfile", "web: gunicorn -w 8 -b :8000 app\n", "web: gunicorn -w 8 -b :8080 app # -w 1\n", False),
        ("Dockerfile", "FROM debian\nCMD app\n", "FROM debian\nLABEL org=app\nCMD app --port 1\n", False),
        (".github/run.sh", "java -cp out Main\n", "java -Xint -cp out Main\n", False),
        ("docs/app.service", "[Service]\n", "[Service]\nCPUQuota=20%\n", False),
        ("config/app.yaml", "workers: 8\ncpu: 4\n", "workers: 1\ncpu: 2\n", False),
        ("tox.ini", "setenv = PYTHONHASHSEED=1\n", "setenv = PYTHONHASHSEED=2\n", False),
        ("check.sh", "grep -w shop list\n", "grep -w order list\n", False),
        ("used.ini", "opcache.enable=1\n", "opcache.enable=0\n", False),
        ("run.sh", None, "java -Xint -cp out Main\n", False),
    ],
)
def test_files_that_start_the_program_otherwise(name: str, base: str | None, head: str, is_told: bool, tmp_path: Path) -> None:
    trees = [written(tmp_path / side, {} if text is None else {name: text}) for side, text in (("base", base), ("head", head))]
    for tree in trees:
        tree.mkdir(exist_ok=True)
    assert started_otherwise(trees, {name} - {"used.ini"}) == ((name,) if is_told else ())


@pytest.mark.parametrize("tool", ["cmake", "meson"])
def test_a_file_that_is_installed_in_the_place_of_one_that_is_built_as_well(tool: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    program = {"prog.c": "#ifndef N\n#define N 1\n#endif\nint main(void) { return N; }\n"}
    builds = {
        "base": {"CMakeLists.txt": f"{CMAKE}{CAREFUL}{PLAIN}", "meson.build": MESON.format(plain="true"), "careful/meson.build": BESIDE},
        "head": {"CMakeLists.txt": f"{CMAKE}{OTHER}", "meson.build": MESON.format(plain="false"), "careful/meson.build": BESIDE},
        "same": {"CMakeLists.txt": f"{CMAKE}{PLAIN}", "meson.build": MESON.format(plain="true"), "careful/meson.build": BESIDE},
    }
    command = {"cmake": "cmake -S . -B build && cmake --build build", "meson": "meson setup build && ninja -C build"}[tool]
    trees = {}
    for side, files in builds.items():
        told = {name: text.format(careful="false" if side != "head" else "true") for name, text in files.items() if "meson" in name}
        trees[side] = written(tmp_path / side, {**program, **files, **told})
        subprocess.run(command, shell=True, cwd=trees[side], check=True, capture_output=True)
    file = {"cmake": "build/cmake_install.cmake", "meson": "build/meson-info/intro-installed.json"}[tool]
    assert otherwise_delivered([trees["base"], trees["head"]], ()) == (file,)
    assert otherwise_delivered([trees["base"], trees["same"]], ()) == ()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({".gitattributes": "table.bin export-ignore\n"}, "say otherwise in `.gitattributes` which files users get"),
        ({"Procfile": "job: python3 -X dev job.py\n"}, "start the program with other options or limits in `Procfile`"),
    ],
)
def test_what_users_of_head_lack_or_start_otherwise_is_not_called_harmless(head: dict[str, str], said: str, tmp_path: Path) -> None:
    job = "print(len(open('table.bin').read()), sum(i * i % 7 for i in range(300000)))\n"
    toml = 'build.command = "true"\nmeasure.budget_s = 2\n[[workload]]\nname = "job"\ncommand = "python3 job.py"\n'
    base = {"job.py": job, "table.bin": "1" * 50, "Procfile": "job: python3 job.py\n", "perfdiff.toml": toml}
    request = first_two(tmp_path, (base, head))
    found = pipeline.compare(by_whole_runs(request), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE
    assert said in say(found.sentence)
