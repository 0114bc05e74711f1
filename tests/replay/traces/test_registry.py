"""Formats told apart, built-in names, and files that are no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry, synthesis
from gandiva_core.replay.traces.readers import own
from gandiva_core.replay.traces.text import lines_of

HEADS = {
    "own": "job_id,arrival_s,g,total_steps\na,0,1,1",
    "philly-json": " [\n]",
    "philly-csv": "job_id,submit_s,duration_s,num_gpus,vc\n1,0,1,1,a",
    "muri": "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time",
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
    "pollux": "name,time,application,num_replicas,batch_size",
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration",
    "alibaba": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,deletion_time,scheduled_time",
    "gavel": "a\tb\tc\td\t1\t2\t3",
}


@pytest.mark.parametrize("name", HEADS)
def test_each_format_is_known_by_its_head(name: str) -> None:
    assert registry.detect(lines_of(HEADS[name].encode()), "t").name == name
    assert registry.format_named(name).name == name


def test_every_format_is_detected_by_one_of_these_heads() -> None:
    assert {form.name for form in registry.FORMATS} == set(HEADS)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"\x00\x01\x02", "binary data"),
        (b"hello world\n", "'hello world'"),
        (b"\xff\xfe\xfd\n", "not UTF-8"),
        (b"a,b\n1,2\n", "'a,b'"),
    ],
)
def test_a_file_that_is_no_trace_is_one_error_naming_it(
    tmp_path: Path, content: bytes, found: str
) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=found) as raised:
        registry.read(path)
    assert raised.value.place.startswith(str(path))


def test_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        registry.load(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="a directory"):
        registry.load(tmp_path)


@pytest.mark.parametrize("name", synthesis.GENERATORS)
def test_a_built_in_name_where_a_file_must_be_says_how_to_make_one(name: str) -> None:
    with pytest.raises(InputError, match=f"gandiva trace synth {name} FILE"):
        registry.read(Path(name))


def test_a_forced_format_reads_as_that_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEADS["tiresias"] + "\n0,1,0,10,m,5,0\n")
    assert registry.read(path, format_name="tiresias").format_name == "tiresias"
    with pytest.raises(InputError, match="no column"):
        registry.read(path, format_name="own")
    with pytest.raises(InputError, match="--format"):
        registry.read(path, format_name="csv")


@pytest.mark.parametrize("name", synthesis.GENERATORS)
def test_builtin_traces_load_by_name_and_survive_a_file(tmp_path: Path, name: str) -> None:
    trace = registry.load(name, seed=2)
    path = tmp_path / "t.csv"
    path.write_bytes(own.write(trace))
    assert registry.load(path) == trace


def test_unknown_generators_and_seeds_are_refused() -> None:
    with pytest.raises(InputError, match="gandiva-9d"):
        synthesis.make("gandiva-10d", 1)
    with pytest.raises(InputError, match="--seed"):
        synthesis.make("gandiva-9d", -1)
