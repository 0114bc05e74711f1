"""Entry point `sim` of `gandiva.engines`: a run without a JVM.

Policy arms get a substrate that commits what fits; a stock arm gets the model that an entry point of
`gandiva.baselines` names, so that this package knows no baseline.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points, version

from gandiva_core.model.errors import InputError
from gandiva_core.runtime.ports import OpenedSubstrate, RunSetup, SubstrateFactory
from gandiva_core.sim.plain import PlainSubstrate

BASELINES = "gandiva.baselines"
DISTRIBUTION = "gandiva-yarn"


def open_engine(setup: RunSetup) -> OpenedSubstrate:
    """A substrate for one arm; a `SubstrateFactory`.

    Raises:
        InputError: a stock arm without a model, or a site's own configuration, which only a ResourceManager reads.
    """
    if setup.conf_dir is not None:
        expected = "--engine yarn: the simulator reads no Hadoop configuration"
        raise InputError("--conf-dir", setup.conf_dir, expected)
    if setup.arm.is_stock:
        return baseline(setup.arm.base)(setup)
    substrate = PlainSubstrate(setup.cluster, setup.height_max)
    name = f"{PlainSubstrate.__module__}.{PlainSubstrate.__qualname__}"
    return OpenedSubstrate(substrate, name, {"gandiva": version(DISTRIBUTION)})


def baseline(name: str) -> SubstrateFactory:
    """The model of a stock arm, by its name.

    Raises:
        InputError: listing the models that are installed.
    """
    found = {point.name: point for point in entry_points(group=BASELINES)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise InputError("--arms", f"{name} on --engine sim", f"a baseline with a model: {known}")
    return _loaded(found[name])


def _loaded(point: EntryPoint) -> SubstrateFactory:
    factory: SubstrateFactory = point.load()
    return factory
