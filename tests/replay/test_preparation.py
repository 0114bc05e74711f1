"""What is asked for becomes runs: settings by precedence, a site's queues, and one plan for every arm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.planning import Shape
from gandiva_core.replay.preparation import Prepared, Request, prepare

HEADER = (
    "job_id,arrival_s,model,batch,g,total_steps,priority_class,weight,growshrink,"
    "multi_job_id,entity,slo_factor,ref_duration_s,queue,user,memory_mib,vcores"
)
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


def prepared(tmp_path: Path, **changes: Any) -> Prepared:
    trace = tmp_path / "trace.csv"
    if not trace.exists():
        trace.write_text(f"{HEADER}\na,0,,,2,10,0,1,false,,,,,,,,\n", encoding="utf-8")
    asked: dict[str, Any] = {
        "trace": str(trace),
        "arms": "capacity,gandiva",
        "engine": "sim",
        "seeds": (1,),
        "shapes": (Shape.GPU,),
        "out": tmp_path / "out",
        "cluster": "gandiva-100",
    }
    return prepare(Request(**{**asked, **changes}))


def site(tmp_path: Path, queues: str = "default,research", **more: str) -> Path:
    folder = tmp_path / "conf"
    folder.mkdir()
    names = queues.split(",")
    keys: Mapping[str, str] = {
        "yarn.resource-types": "yarn.io/gpu",
        "yarn.scheduler.capacity.resource-calculator": DOMINANT,
        "yarn.scheduler.capacity.root.queues": queues,
        **{
            f"yarn.scheduler.capacity.root.{name}.capacity": str(100 / len(names)) for name in names
        },
        **{f"yarn.scheduler.gandiva.{key}": value for key, value in more.items()},
    }
    lines = [f"<property><name>{k}</name><value>{v}</value></property>" for k, v in keys.items()]
    text = f"<configuration>{''.join(lines)}</configuration>"
    (folder / "yarn-site.xml").write_text(text, encoding="utf-8")
    return folder


def test_every_arm_is_given_the_same_plan_and_surroundings(tmp_path: Path) -> None:
    orders = prepared(tmp_path, seeds=(1, 2), shapes=tuple(Shape)).orders
    assert len(orders) == 8
    assert len({order.name for order in orders}) == 8
    for shape in Shape:
        for seed in (1, 2):
            here = [o for o in orders if (o.plan.shape, o.seed) == (shape, seed)]
            assert [order.arm.name for order in here] == ["capacity", "gandiva"]
            assert here[0].plan is here[1].plan
            assert here[0].surroundings == here[1].surroundings


def test_a_trace_brings_its_cluster_unless_told(tmp_path: Path) -> None:
    (order,) = prepared(tmp_path, trace="gandiva-180", arms="gandiva", cluster=None).orders
    assert order.cluster.gpus == 180
    (order,) = prepared(tmp_path, trace="gandiva-3h", arms="gandiva", cluster=None).orders
    assert order.cluster.gpus == 100
    (order,) = prepared(tmp_path, arms="gandiva", cluster=None).orders
    assert any("names no cluster" in note for note in order.notes)


def test_flags_win_over_environment_over_files(tmp_path: Path) -> None:
    """DESIGN §10."""
    conf = site(tmp_path, **{"height.max": "2", "quantum-ms": "5000"})
    environment = {"GANDIVA_HEIGHT_MAX": "3"}

    def settings(**changes: Any) -> tuple[int, float]:
        found = prepared(tmp_path, conf_dir=conf, **changes).orders[0].settings
        return (found.height_max, found.quantum_s)

    assert settings() == (2, 5.0)
    assert settings(environment=environment) == (3, 5.0)
    assert settings(environment=environment, height_max=8) == (8, 5.0)


def test_the_height_sizes_the_default_asks_of_every_arm(tmp_path: Path) -> None:
    asks = [
        order.plan.jobs[0].spec.workers[0].memory_mib
        for height in (1, 4)
        for order in prepared(tmp_path, height_max=height).orders
    ]
    assert asks[0] == asks[1] == 4 * asks[2]
    assert asks[2] == asks[3]


def test_a_site_s_queues_bound_the_engine(tmp_path: Path) -> None:
    order = prepared(tmp_path, conf_dir=site(tmp_path)).orders[0]
    limits = {str(queue.name): queue.guaranteed_gpus for queue in order.cluster.queues}
    assert limits == {"root": 100.0, "root.default": 50.0, "root.research": 50.0}


def test_amounts_of_gpus_are_physical_whatever_the_height(tmp_path: Path) -> None:
    """DESIGN §4: the plug-in scales them where the scheduler counts places; the core is told devices."""
    conf = site(tmp_path, queues="default")
    amounts = (
        "<configuration><property><name>yarn.scheduler.capacity.root.default.capacity</name>"
        "<value>[memory=409600,vcores=64,yarn.io/gpu=50]</value></property></configuration>"
    )
    (conf / "capacity-scheduler.xml").write_text(amounts, encoding="utf-8")
    for height in (1, 4):
        order = prepared(tmp_path, conf_dir=conf, height_max=height).orders[0]
        limits = {str(queue.name): queue.guaranteed_gpus for queue in order.cluster.queues}
        assert limits["root.default"] == 50.0


def test_jobs_without_a_queue_need_the_default_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        prepared(tmp_path, conf_dir=site(tmp_path, queues="one,two"))
    assert "no queue for job a" in caught.value.found
    assert "root.one, root.two" in caught.value.expected


def test_a_misspelt_key_of_ours_is_named(tmp_path: Path) -> None:
    conf = site(tmp_path, **{"hight.max": "2"})
    with pytest.raises(InputError, match=r"yarn-site\.xml:1: yarn\.scheduler\.gandiva\.hight\.max"):
        prepared(tmp_path, conf_dir=conf)


def test_no_stock_arm_no_baseline_to_be_invalid(tmp_path: Path) -> None:
    conf = site(tmp_path)
    path = conf / "yarn-site.xml"
    path.write_text(path.read_text().replace(DOMINANT, ""), encoding="utf-8")
    assert prepared(tmp_path, conf_dir=conf, arms="gandiva").orders
    with pytest.raises(InputError, match="invalid baseline"):
        prepared(tmp_path, conf_dir=conf)


def test_what_a_trace_left_out_is_counted_and_told(tmp_path: Path) -> None:
    rows = [f"j{n},0,,,1,10,0,1,false,,,,,,,," for n in range(200)]
    rows.append("bad,0,,,0,10,0,1,false,,,,,,,,")
    (tmp_path / "trace.csv").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    found = prepared(tmp_path)
    assert dict(found.orders[0].plan.left_out) == {"trace: zero_gpu": 1}
    assert any("zero_gpu: 1 left out" in finding for finding in found.findings)
