"""`gandiva submit`, with programs that stand in for `yarn` (DESIGN §6, §10)."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gandiva_core.cli.main import ExitCode
from gandiva_core.model.errors import InputError
from yarn_plugin.cluster.chosen import NoClusterError
from yarn_plugin.submit import client
from yarn_plugin.submit.client import Job, runner, shell_command
from yarn_plugin.submit.command import submit


def test_a_job_becomes_the_java_clients_options_and_nothing_else_does() -> None:
    assert Job().words() == []
    job = Job(
        "python t.py",
        Path("job.xml"),
        ("a=1", "b=2"),
        Path("src"),
        Path("v.zip"),
        "bin/python",
        "n",
        True,
    )
    assert job.words() == [
        *("-conf_file", "job.xml", "-conf", "a=1", "-conf", "b=2", "-executes", "python t.py"),
        *("-src_dir", "src", "-python_venv", "v.zip", "-python_binary_path", "bin/python"),
        *("-appname", "n", "-detach"),
    ]


def test_one_word_is_a_line_of_shell_and_several_are_quoted() -> None:
    assert shell_command(["echo $RANK; exit 3"]) == "echo $RANK; exit 3"
    assert shell_command(["python", "t.py", "a b"]) == "python t.py 'a b'"


def test_the_yarn_on_path_is_used_with_the_folder_that_was_named(tmp_path: Path) -> None:
    conf, bin_dir = tmp_path / "conf", tmp_path / "bin"
    conf.mkdir()
    bin_dir.mkdir()
    with pytest.raises(InputError, match=r"--conf-dir.*yarn-site\.xml"):
        runner(conf, None, {"PATH": str(bin_dir)})
    (conf / "yarn-site.xml").write_text("<configuration/>")
    yarn = bin_dir / "yarn"
    yarn.write_text("#!/bin/sh\n")
    yarn.chmod(0o755)
    program, environment = runner(conf, None, {"PATH": str(bin_dir)})
    assert program == [str(yarn), "jar"]
    assert environment == {"HADOOP_CONF_DIR": str(conf), "YARN_CONF_DIR": str(conf)}


def test_no_cluster_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NoClusterError, match="no cluster is up"):
        runner(None, tmp_path / "none", {})
    with pytest.raises(InputError, match="one of them"):
        runner(tmp_path, tmp_path / "none", {})


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `yarn` that does what its last argument says, and a jar that is there."""
    jar = tmp_path / "gandiva-client.jar"
    jar.touch()
    monkeypatch.setattr(client, "client_jar", lambda: jar)
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "yarn-site.xml").write_text("<configuration/>")
    yarn = tmp_path / "yarn"
    yarn.write_text(
        "#!/bin/sh\n"
        'echo "2026-01-01 00:00:00,000 INFO client.Proxy: chatter" >&2\n'
        'echo "application_1_1 RUNNING" >&2\n'
        'for last; do :; done; eval "$last"\n'
    )
    yarn.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return conf


@pytest.mark.parametrize(
    ("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 128 + 9)]
)
def test_the_exit_code_is_the_jobs_and_hadoops_chatter_is_kept_back(
    stand_in: Path, capfd: pytest.CaptureFixture[str], command: str, code: int
) -> None:
    app = typer.Typer()
    app.command()(submit)
    result = CliRunner().invoke(app, ["--conf-dir", str(stand_in), "--", command])
    assert result.exit_code == code
    said = result.stderr + capfd.readouterr().err
    assert "application_1_1 RUNNING" in said
    assert "chatter" not in said


def test_without_a_cluster_the_exit_code_is_unreachable(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(submit)
    result = CliRunner().invoke(app, ["--state-dir", str(tmp_path / "none"), "--", "true"])
    assert result.exit_code == ExitCode.UNREACHABLE


def test_a_jar_that_was_not_built_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make plugin"):
        client.client_jar(tmp_path)
