"""The files in conf/ are what they say: a cluster could start with them, in mode observe."""

from __future__ import annotations

import os

import pytest

from gandiva_core.site.baseline import GANDIVA_SCHEDULER, SCHEDULER_KEY
from gandiva_core.site.configuration import NODE_FILES, SiteConfiguration
from gandiva_core.site.findings import Severity
from gandiva_core.site.hadoop_xml import read_file
from gandiva_core.site.own_keys import MODE, PYTHON
from gandiva_core.site.resource_types import GPU
from gandiva_core.site.start import NODE_GPUS, PLUGINS
from gandiva_core.site.validation import Role, validate
from tests.architecture.sources import ROOT

YARN = ROOT / "conf" / "yarn"
FOLDERS = {Role.RM: YARN, Role.NM: YARN / "nodemanager", Role.CLIENT: YARN / "client"}


@pytest.mark.parametrize("role", Role)
def test_nothing_is_wrong_with_them(role: Role) -> None:
    found = validate(FOLDERS[role], [role], {"PATH": os.environ["PATH"]})
    # The interpreter's place is the shop's own.
    told = [item for item in found if item.severity is not Severity.INFO]
    assert [str(item) for item in told if item.subject != PYTHON] == []
    assert all(item.severity is Severity.WARNING for item in told)


def test_the_resource_manager_observes() -> None:
    site = SiteConfiguration.load(YARN)
    assert site.get(MODE) == "observe"
    assert site.get(SCHEDULER_KEY) == GANDIVA_SCHEDULER
    every = {item.name: item.value for item in read_file(ROOT / "conf" / "gandiva-site.xml")}
    assert every[MODE] == "observe"


def test_a_nodes_plug_in_is_off_and_its_gpus_are_stated() -> None:
    """DESIGN §4."""
    site = SiteConfiguration.load(YARN / "nodemanager", names=NODE_FILES)
    assert GPU not in site.texts(PLUGINS)
    assert site.whole(NODE_GPUS, 0) > 0


def test_all_three_declare_the_same_types() -> None:
    texts = {(folder / "resource-types.xml").read_text() for folder in FOLDERS.values()}
    assert len(texts) == 1
