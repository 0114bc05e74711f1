"""Whatever the bytes, a reader gives a trace or one InputError, never another exception."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.readers import own
from gandiva_core.replay.traces.reading import GpusFrom, ReadOptions

SAMPLES = {
    "own": "job_id,arrival_s,g,total_steps,weight\na,0,1,10,1\nb,5,2,20,2\nc,9,4,30,\n",
    "philly-csv": "job_id,submit_s,duration_s,num_gpus,vc\n1,0,10,1,a\n2,5,20,2,a\n3,9,5,1,b\n",
    "philly-json": (
        '[{"jobid":"a","vc":"v","user":"u","status":"Pass","submitted_time":"2017-10-07 01:00:00",'
        '"attempts":[{"start_time":"2017-10-07 01:01:00","end_time":"2017-10-07 02:01:00",'
        '"detail":[{"ip":"m","gpus":["gpu0"]}]}]}]'
    ),
    "muri": (
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time\n"
        "1,2,0,100,vgg,16,1000,0,10\n2,1,5000,200,a2c,4,2000,0,10\n"
    ),
    "tiresias": (
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        "0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n"
    ),
    "pollux": "name,time,application,num_replicas,batch_size\na,1,ncf,1,32\nb,2,bert,4,64\n",
    "helios": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "1,u,a,2,8,1,COMPLETED,2020-06-09 10:00:00,2020-06-09 10:01:00,2020-06-09 11:01:00,3600,60\n"
    ),
    "alibaba": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\np1,6000,12288,2,1000,,LS,Succeeded,1000,5000,1400\n"
    ),
    "gavel": "M (batch size 4)\trun\td\t-s\t0\t10\t1\t1\t-1\t0\nN\trun\td\t-s\t0\t10\t2\t1\t-1\t5\n",
}

PIECES = [
    b"", b"-1", b"0", b"nan", b"inf", b"1e400", b"99999999999999999999", b"\xff", b"\0", b'"', b",",
    b"\t", b"\n", b"1_0", b"null", b"[]", b"{}", b"2020-13-45 99:99:99", b"0001-01-01 00:00:00",
    b"\xd9\xa1", b"\r", b"\x1b[2J", b"#", b"[" * 5000,
]  # fmt: skip


def mutations(content: bytes) -> st.SearchStrategy[bytes]:
    """Some places of `content` overwritten with awkward pieces."""
    place = st.tuples(st.integers(0, len(content)), st.integers(0, 30), st.sampled_from(PIECES))

    def apply(places: list[tuple[int, int, bytes]]) -> bytes:
        changed = content
        for start, length, piece in places:
            changed = changed[:start] + piece + changed[start + length :]
        return changed

    return st.lists(place, min_size=1, max_size=4).map(apply)


def check(path: Path, name: str | None) -> None:
    """A sound trace, or one line of error naming the file or a rule's option."""
    options = ReadOptions(on_bad=OnBad.SKIP, gpus_from=GpusFrom.LIST)
    try:
        reading = registry.read(path, format_name=name, options=options)
    except InputError:
        return
    for job in reading.trace.jobs:
        assert job.gpus >= 1
        assert job.total_steps >= 1
        assert 0 <= job.arrival_s < math.inf
        assert job.ref_duration_s is None or 0 < job.ref_duration_s < math.inf
    arrivals = [job.arrival_s for job in reading.trace.jobs]
    assert arrivals == sorted(arrivals)
    assert len({job.job_id for job in reading.trace.jobs}) == len(arrivals)
    again = path.with_name("again.csv")
    again.write_bytes(own.write(reading.trace))
    assert registry.load(again).jobs == reading.trace.jobs


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "trace"


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_sound(file: Path, name: str) -> None:
    file.write_text(SAMPLES[name])
    reading = registry.read(file)
    assert (reading.format_name, reading.trace.left_out) == (name, {})


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_mutated_files(file: Path, name: str, data: st.DataObject) -> None:
    file.write_bytes(data.draw(mutations(SAMPLES[name].encode())))
    check(file, data.draw(st.sampled_from([name, None])))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("other", SAMPLES)
def test_a_file_forced_into_another_format(file: Path, name: str, other: str) -> None:
    file.write_text(SAMPLES[other])
    check(file, name)


@given(st.binary(max_size=200))
def test_any_bytes(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    check(file, None)
