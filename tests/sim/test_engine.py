"""The engine `sim`: which substrate an arm gets, and clear refusals."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from baselines.capacity.substrate import CapacitySubstrate
from baselines.exclusive_backfill import ExclusiveBackfill
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.runtime.ports import OpenedSubstrate
from gandiva_core.sim.engine import open_engine
from gandiva_core.sim.plain import PlainSubstrate
from tests.sim.runs import setup
from tests.sim.worlds import servers

CLUSTER = Cluster("c", servers(1))


def opened(arm: str, height_max: int = 1, conf_dir: str | None = None) -> OpenedSubstrate:
    return open_engine(setup(CLUSTER, arm, height_max, conf_dir))


def test_it_is_the_entry_point_sim() -> None:
    (point,) = (point for point in entry_points(group="gandiva.engines") if point.name == "sim")
    assert point.load() is open_engine


def test_a_policy_arm_gets_the_plain_substrate_and_stock_arms_their_models() -> None:
    assert isinstance(opened("gandiva", 4).substrate, PlainSubstrate)
    assert isinstance(opened("capacity").substrate, CapacitySubstrate)
    assert isinstance(opened("capacity-fair").substrate, CapacitySubstrate)
    assert isinstance(opened("exclusive-backfill").substrate, ExclusiveBackfill)


def test_each_says_what_hands_out_containers() -> None:
    assert opened("gandiva", 4).scheduler_class == "gandiva_core.sim.plain.PlainSubstrate"
    assert opened("capacity").scheduler_class == "baselines.capacity"
    assert opened("capacity").versions == {"modelled hadoop": "3.4.2"}
    assert opened("exclusive-backfill").scheduler_class == "baselines.exclusive_backfill"


def test_an_arm_without_a_model_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(InputError, match=r"nonesuch on --engine sim.*capacity, capacity-fair"):
        opened("nonesuch")


def test_preemption_has_no_model_and_says_where_it_runs() -> None:
    with pytest.raises(InputError, match=r"capacity-preempt; expected --engine yarn"):
        opened("capacity-preempt")


def test_a_sites_configuration_needs_a_real_resource_manager() -> None:
    with pytest.raises(InputError, match=r"--conf-dir: found /etc/hadoop; expected --engine yarn"):
        opened("capacity", conf_dir="/etc/hadoop")
